import type { Config } from "./config.ts";
import { isRecord, readDocument } from "./document.ts";
import { takeImports } from "./imports.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";
import type { ConfigSource } from "./parse.ts";
import { listSettings } from "./settings.ts";
import { isOverridden, NOTHING_STORED, STORED_SECTIONS, type StoredSection } from "./stored.ts";
import { describeEntry, type DocumentEntry, entriesOf } from "./stored-document.ts";

/** A provider, a model, an alias or a general setting, with its origin. */
export interface ListedEntry {
  readonly section: StoredSection;
  readonly name: string;
  readonly origin: "file" | "stored" | "environment" | "built in" | "imported";
  readonly state: "in force" | "overridden" | "left out" | "without credential";
  /** YAML with secrets hidden; empty where nothing is written down. */
  readonly entry: string;
  /** Why it is left out. */
  readonly problems: readonly string[];
  /** Number of a provider's models in force. */
  readonly models: number;
}

/** All entries of a configuration in force, by section: those of the file, of the stored configuration, and the others. */
export function listEntries(config: Config, source: ConfigSource): ListedEntry[] {
  const file = fileOf(source);
  const all = entriesOf(source.stored ?? NOTHING_STORED);
  return STORED_SECTIONS.flatMap((section) => {
    const ofFile = Object.entries(file.sections[section] ?? {}).map(([name, value]) => {
      const entry = { section, name, origin: "file", entry: describeEntry(section, value) } as const;
      const left = config.stored?.leftOut.find(({ path }) => path.length === 2 && isPartOf(path, [section, name]));
      return listed(config, entry, left && { state: "left out", problems: left.problems });
    });
    const stored = all
      .filter((entry) => entry.section === section)
      .map((entry) => {
        if (isOverridden([section, entry.name], { ...file, env: source.env }))
          return listed(config, { ...entry, origin: "stored" }, { state: "overridden" });
        const left = config.stored?.leftOut.filter(({ path }) => isPartOf(path, [section, entry.name])) ?? [];
        if (left.length === 0) return listed(config, { ...entry, origin: "stored" });
        const problems = left.flatMap((one) => one.problems);
        return listed(config, { ...entry, origin: "stored" }, { state: "left out", problems });
      });
    const known = new Set([...ofFile, ...stored].filter(({ state }) => state !== "overridden").map(({ name }) => name));
    return [...ofFile, ...stored, ...others(config, source, section).filter(({ name }) => !known.has(name))];
  });
}

/** The stored entries that the file or the environment has too. */
export function overriddenEntries(source: ConfigSource, entries: readonly DocumentEntry[]): DocumentEntry[] {
  const file = fileOf(source);
  return entries.filter(({ section, name }) => isOverridden([section, name], { ...file, env: source.env }));
}

interface FileSections {
  readonly file: unknown;
  readonly patterns: readonly string[];
  readonly sections: Readonly<Record<string, Record<string, unknown>>>;
}

function fileOf({ file, text }: ConfigSource): FileSections {
  const value = file === undefined ? {} : readDocument(text, file).value;
  const sections = Object.entries(isRecord(value) ? value : {}).filter(
    (entry): entry is [string, Record<string, unknown>] => isRecord(entry[1]),
  );
  const { value: rest, patterns } = takeImports(value);
  return { file: rest, patterns, sections: Object.fromEntries(sections) };
}

/** Whether a path is that of an entry, or of its section, or of all of the document. */
function isPartOf(path: readonly (string | number)[], entry: readonly string[]): boolean {
  return path.every((step, index) => entry[index] === step);
}

function listed(
  config: Config,
  entry: Pick<ListedEntry, "section" | "name" | "origin" | "entry">,
  { state, problems = [] }: Partial<Pick<ListedEntry, "state" | "problems">> = {},
): ListedEntry {
  const { section, name } = entry;
  const provider = section === "providers" ? config.providers.find((one) => one.name === name) : undefined;
  const lacks = provider?.simulated === false && provider.lack !== undefined;
  const inForce = state === undefined || state === "in force";
  return {
    ...entry,
    state: state ?? (lacks ? "without credential" : "in force"),
    problems,
    models: provider !== undefined && inForce ? config.models.filter((model) => model.provider === name).length : 0,
  };
}

/** Entries that are in force without being in the file or the document. */
function others(config: Config, { env }: ConfigSource, section: StoredSection): ListedEntry[] {
  const of = (name: string, origin: ListedEntry["origin"], entry = ""): ListedEntry =>
    listed(config, { section, name, origin, entry });
  switch (section) {
    case "providers":
      return config.providers.map(({ name, simulated }) =>
        of(name, !simulated && Object.hasOwn(BUILT_IN_PROVIDERS, name) ? "environment" : "built in"),
      );
    case "models": {
      const imports = config.imports.map(({ provider, prefix }) => ({ provider, prefix }));
      return [...config.models, ...config.routes].map((model) => {
        const provider = "provider" in model ? model.provider : undefined;
        const isImported = imports.some((one) => one.provider === provider && model.id.startsWith(one.prefix));
        return of(model.id, isImported ? "imported" : "built in");
      });
    }
    case "aliases":
      return [];
    case "timeouts":
    case "limits":
    case "retries":
    case "breaker":
      return listSettings(config)
        .filter(({ key }) => key.startsWith(`${section}.`) && key !== "limits.burst_seconds")
        .map(({ key, value }) => {
          const name = key.slice(section.length + 1);
          const isSet = isOverridden([section, name], { file: {}, patterns: [], env });
          return of(name, isSet ? "environment" : "built in", value);
        });
  }
}

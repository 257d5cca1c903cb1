import { type ConfigPath, type Problem, type Report } from "./config-error.ts";
import { type ConfigDocument, isRecord, pathKey } from "./document.ts";
import { type Environment, VARIABLE_SETTINGS } from "./environment.ts";
import { type ModelLists, NO_LISTS, takeImports } from "./imports.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";
import { withPresets } from "./presets.ts";
import { SECRET_HEADER } from "./scalars.ts";
import { nameProblem } from "./stored-names.ts";

/** Sections of the stored configuration, all of which a reload applies. */
export const STORED_SECTIONS = ["providers", "models", "aliases", "timeouts", "limits", "retries", "breaker"] as const;

export type StoredSection = (typeof STORED_SECTIONS)[number];

/** The configuration in the database, beside the configuration file. */
export interface StoredConfiguration {
  /** 0: nothing has ever been stored. Undefined: not known, because the database did not answer. */
  readonly version: number | undefined;
  /** YAML in the form of the file; empty for none. */
  readonly document: string;
  readonly credentials: readonly StoredCredential[];
}

/** The credential of a provider. */
export interface StoredCredential {
  readonly provider: string;
  /** Origin of the only address that it may be sent to; undefined for a new one, which is for the provider's. */
  readonly address: string | undefined;
  /** Secrets; undefined when they cannot be decrypted. */
  readonly apiKeys: readonly string[] | undefined;
}

/** Characters of a stored document. */
export const MAX_STORED_LENGTH = 256 * 1024;
/** Entries of a stored document. */
export const MAX_STORED_ENTRIES = 2_000;

/** The stored configuration of a database without any. */
export const NOTHING_STORED: StoredConfiguration = { version: 0, document: "", credentials: [] };

/** In place of the stored configuration, before the database is read and when it does not answer. */
export const UNREAD: StoredConfiguration = { version: undefined, document: "", credentials: [] };

/** Whether the database is known to have had no stored configuration. */
export function isNothingStored({ version, document }: StoredConfiguration): boolean {
  return version === 0 && document === "";
}

/** In place of a file's name in messages. */
export const STORED_NAME = "stored configuration";

/** A stored entry that cannot be used. */
export interface LeftOut {
  /** Its section and name; empty for all of it. */
  readonly path: ConfigPath;
  /** Each with its place. */
  readonly problems: readonly string[];
}

/** A stored document, apart from the entries that are left out. */
export interface StoredPart {
  readonly document: ConfigDocument;
  readonly credentials: readonly StoredCredential[];
  /** By `pathKey` of a section, or of section and name, which can be an entry of the file. */
  readonly leftOut: ReadonlySet<string>;
  /** Whether providers may have private addresses. */
  readonly allowsPrivate: boolean;
  /**
   * Whether an entry, by its `pathKey`, was stored before: it keeps its name when a provider of the file lists a model of that name later.
   * Otherwise the author of that list would get the requests of stored models.
   */
  readonly wasStored: (entry: string) => boolean;
}

/** A file's value with the stored entries that are in force. */
interface Merged {
  readonly value: unknown;
  /** Entries of `models` that import, those of the file first. */
  readonly patterns: readonly string[];
  /** Credentials of the stored providers that are in force, by name. */
  readonly providers: ReadonlyMap<string, StoredCredential | undefined>;
  /** Whether a path leads to a stored entry that is in force. */
  readonly isStored: (path: ConfigPath) => boolean;
  /** The sections with stored entries that are in force. */
  readonly sections: ReadonlySet<string>;
}

interface MergeParts {
  /** The file's value without its imports. */
  readonly file: unknown;
  /** The file's imports. */
  readonly patterns: readonly string[];
  readonly env: Environment;
  /** Known lists of models, by the names of providers. */
  readonly lists: ModelLists;
  readonly report: Report;
}

/** Adds the stored entries whose names neither the file nor the environment has. Reports entries that only a file may have. */
export function mergeStored(part: StoredPart | undefined, { file, patterns, env, lists, report }: MergeParts): Merged {
  if (part === undefined)
    return { value: file, patterns, providers: new Map(), isStored: () => false, sections: new Set() };
  const fileValue = isRecord(file) ? file : {};
  const inForce = new Set<string>();
  const stored = sectionsOf(part, (path, text) => {
    inForce.add(pathKey(path));
    report(path, text);
  });
  const entries = Object.fromEntries(
    stored.map(([section, named]) => {
      const own = Object.entries(named).filter(([name]) => {
        const path = [section, name];
        if (isOverridden(path, { file: fileValue, patterns, env }) || part.leftOut.has(pathKey(path))) return false;
        inForce.add(pathKey(path));
        return true;
      });
      return [section, Object.fromEntries(own)];
    }),
  );
  const isOfFile = (provider: string): boolean =>
    isOverridden(["providers", provider], { file: fileValue, patterns, env });
  for (const [section, named] of Object.entries(entries))
    for (const [name, entry] of Object.entries(named)) {
      checkEntry([section, name], entry, { ...part, report });
      const known = part.wasStored(pathKey([section, name])) ? NO_LISTS : lists;
      const problem = nameProblem([section, name], { patterns, lists: known, isOfFile });
      if (problem !== undefined) report([section, name], problem);
    }
  const used = withoutLeftOut(fileValue, part.leftOut);
  const imports = takeImports(withPresets({ ...entries, providers: withoutKeys(entries["providers"] ?? {}) }));
  const merged = Object.entries(imports.value as Record<string, Record<string, unknown>>).map(([section, named]) => {
    const before = used[section];
    // A value of the file that is not a map is left for the schema to refuse.
    return [section, before === undefined || isRecord(before) ? { ...before, ...named } : before];
  });
  const names = Object.keys(entries["providers"] ?? {});
  return {
    value: { ...used, ...Object.fromEntries(merged) },
    patterns: [...new Set([...patterns, ...imports.patterns])],
    providers: new Map(names.map((name) => [name, part.credentials.find(({ provider }) => provider === name)])),
    isStored: (path) => inForce.has(pathKey(path.slice(0, 1))) || inForce.has(pathKey(path.slice(0, 2))),
    sections: new Set(Object.entries(entries).flatMap(([section, named]) => (isEmpty(named) ? [] : [section]))),
  };
}

/** A file's value without the entries that are left out. */
function withoutLeftOut(file: Record<string, unknown>, leftOut: StoredPart["leftOut"]): Record<string, unknown> {
  const sections = Object.entries(file).map(([section, named]) => {
    if (!isRecord(named)) return [section, named];
    return [
      section,
      Object.fromEntries(Object.entries(named).filter(([name]) => !leftOut.has(pathKey([section, name])))),
    ];
  });
  return Object.fromEntries(sections) as Record<string, unknown>;
}

/** Whether the file, or the environment for a provider or a setting, has an entry of this section and name. */
export function isOverridden(
  [section, name]: ConfigPath,
  { file, patterns, env }: Pick<MergeParts, "file" | "patterns" | "env">,
): boolean {
  const named = isRecord(file) ? file[section!] : undefined;
  if (isRecord(named) && Object.hasOwn(named, name!)) return true;
  if (section === "models" && patterns.includes(String(name))) return true;
  const variable = VARIABLE_SETTINGS.find(({ path: [one, key] }) => one === section && key === name)?.variable;
  if (variable !== undefined) return Boolean(env[variable]);
  if (section !== "providers" || !Object.hasOwn(BUILT_IN_PROVIDERS, name!)) return false;
  return Boolean(env[`${String(name).toUpperCase()}_API_KEY`]);
}

/** The sections that can be read; reports the others. */
function sectionsOf(
  { document: { value }, leftOut }: StoredPart,
  report: Report,
): [StoredSection, Record<string, unknown>][] {
  return Object.entries(isRecord(value) ? value : {}).flatMap(([key, named]) => {
    const section = STORED_SECTIONS.find((one) => one === key);
    if (leftOut.has(pathKey([key]))) return [];
    if (section === undefined)
      report([key], `is for the configuration file only; stored are: ${STORED_SECTIONS.join(", ")}`);
    else if (named !== null && !isRecord(named)) report([key], "must be a map");
    else return [[section, named ?? {}] as [StoredSection, Record<string, unknown>]];
    return [];
  });
}

/**
 * Settings of providers that name files of this machine, lead requests past the check of their address, or send accounts' own credentials
 * to an address that is not the operator's choice.
 */
const OF_FILE = ["credential_file", "proxy", "address", "tls", "account_credentials"] as const;

interface EntryRules {
  readonly allowsPrivate: boolean;
  readonly report: Report;
}

/**
 * Reports what a stored entry may not have. Users of the dashboard can change stored entries, which must not give them
 * access to the machine's files, its environment and its private network.
 */
function checkEntry(path: ConfigPath, entry: unknown, { allowsPrivate, report }: EntryRules): void {
  for (const place of path[1] === "__proto__" ? [path] : findProtos(entry, path))
    report(place, "this cannot be a name");
  for (const place of findTexts(entry, path, (text) => text.includes("${")))
    report(place, "${NAME} is for the configuration file only: write the value here, a secret as a credential");
  if (path[0] === "limits" && path[1] === "burst_seconds")
    report(path, "is for the configuration file only, because a change needs a restart");
  if (path[0] !== "providers" || !isRecord(entry)) return;
  if (entry["api_keys"] !== undefined)
    report([...path, "api_keys"], "is for the configuration file only; a stored credential is given beside its entry");
  for (const key of OF_FILE) if (entry[key] !== undefined) report([...path, key], "is for the configuration file only");
  for (const name of Object.keys(isRecord(entry["headers"]) ? entry["headers"] : {}))
    if (SECRET_HEADER.test(name))
      report([...path, "headers", name], "may be a secret: give it as the credential, or write it in the file");
  const { providers } = withPresets({ providers: { it: entry } }) as { providers: Record<string, unknown> };
  const complete = providers["it"];
  if (!allowsPrivate && isRecord(complete) && complete["allow_private"] === true)
    report(
      [...path, entry["allow_private"] === undefined ? "preset" : "allow_private"],
      "private addresses need stored_configuration.allow_private: true in the configuration file, or PARLEY_STORED_CONFIGURATION_ALLOW_PRIVATE=true",
    );
}

/** Paths of the texts in a value that `test` finds. */
function findTexts(value: unknown, path: ConfigPath, test: (text: string) => boolean): ConfigPath[] {
  if (typeof value === "string") return test(value) ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    findTexts(inner, [...path, Array.isArray(value) ? Number(key) : key], test),
  );
}

/** Paths of the keys that the schema's maps would skip silently. */
function findProtos(value: unknown, path: ConfigPath): ConfigPath[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "__proto__" ? [[...path, key]] : findProtos(inner, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

/** The credential of a preset is in the environment, which is not for stored providers. */
function withoutKeys(providers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(providers).map(([name, entry]) => [name, isRecord(entry) ? { ...entry, api_keys: [] } : entry]),
  );
}

/** Groups the problems of entries for which `isOne`, by section and name. */
export function groupByEntry(
  problems: readonly Problem[],
  isOne: (path: ConfigPath) => boolean,
): { readonly path: ConfigPath; readonly problems: readonly Problem[] }[] {
  const groups = new Map<string, { path: ConfigPath; problems: Problem[] }>();
  for (const problem of problems) {
    const path = problem.path.slice(0, 2);
    if (path.length === 0 || !isOne(path)) continue;
    const key = pathKey(path);
    const group = groups.get(key) ?? { path, problems: [] };
    group.problems.push(problem);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function isEmpty(named: object): boolean {
  return Object.keys(named).length === 0;
}

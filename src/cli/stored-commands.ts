import { readFileSync } from "node:fs";
import type { Config } from "../config/config.ts";
import type { ConfigSource } from "../config/parse.ts";
import { MAX_STORED_LENGTH, NOTHING_STORED, STORED_SECTIONS, type StoredSection } from "../config/stored.ts";
import { differencesOf, entriesOf } from "../config/stored-document.ts";
import { listEntries } from "../config/stored-entries.ts";
import { systemClock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { credentialCipherOf } from "../gateway/account-credentials.ts";
import type { ChangeFacts, ChangeResult, StoredPorts } from "../gateway/stored-changes.ts";
import { changeEntries, type EntryChange, findVersion, importDocument, rollBack } from "../gateway/stored-edits.ts";
import { ACTOR } from "./accounts-commands.ts";
import {
  type CliContext,
  type Command,
  CONFIG_FLAG,
  type Invocation,
  JSON_FLAG,
  readSecret,
  readStandardInput,
  UsageError,
  writeJson,
} from "./command.ts";
import { formatTable } from "./output.ts";
import { commandLog, withStore } from "./with-store.ts";

const CHANGE_FLAGS = {
  comment: { value: "TEXT", help: "reason, for the list of versions" },
  check: { help: "only check the change, and change nothing" },
  ...CONFIG_FLAG,
} as const;

const CREDENTIAL_FLAGS = {
  "credential-stdin": { help: "read the provider's credential from standard input" },
  "credential-env": { value: "VARIABLE", help: "read the provider's credential from this environment variable" },
} as const;

const SECTION = "SECTION";
const NAME = "NAME";

export const configList: Command = {
  name: "config list",
  summary:
    "list providers, models, aliases and the settings that can be stored, with their origin: the file, or the stored configuration",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async (_, config, source) => {
      const entries = listEntries(config, source);
      if (invocation.switches.has("json")) return writeJson(context.stdout, entries);
      const rows = entries.map(({ section, name, origin, state, problems }) => [
        section,
        name,
        origin,
        state,
        problems.join("; "),
      ]);
      context.stdout.write(`${formatTable([["SECTION", "NAME", "ORIGIN", "STATE", "WHY"], ...rows])}\n`);
    }),
};

export const configSet: Command = {
  name: "config set",
  summary: "set an entry of the stored configuration, which a running gateway applies within a second",
  positionals: [SECTION, NAME],
  flags: {
    entry: { value: "FILE", help: "YAML, as in the configuration file below the name" },
    value: { value: "YAML", help: "the same in place of a file, such as the model of an alias" },
    ...CREDENTIAL_FLAGS,
    ...CHANGE_FLAGS,
  },
  run: (invocation, context) =>
    change(invocation, context, async (ports, facts) => {
      const { entry: file, value } = invocation.flags;
      if (file !== undefined && value !== undefined) throw new UsageError("--value cannot be beside --entry");
      const entry = file === undefined ? value : readText(file);
      const apiKeys = await readCredential(invocation, context);
      if (entry === undefined && apiKeys.length === 0)
        throw new UsageError("--entry FILE or --value YAML is required, or a credential");
      if (entry?.trim() === "") throw new UsageError("the entry is empty; parley config remove removes one");
      return changeEntries(ports, {
        ...facts,
        changes: [{ ...placeOf(invocation), entry, apiKeys, removesCredential: false }],
      });
    }),
};

export const configRemove: Command = {
  name: "config remove",
  summary: "remove an entry of the stored configuration, a provider's credential with it",
  positionals: [SECTION, NAME],
  flags: {
    "credential-only": { help: "remove the provider's credential and leave its entry" },
    ...CHANGE_FLAGS,
  },
  run: (invocation, context) =>
    change(invocation, context, (ports, facts) => {
      const isOnly = invocation.switches.has("credential-only");
      const changes: EntryChange[] = [
        { ...placeOf(invocation), entry: isOnly ? undefined : "", apiKeys: [], removesCredential: isOnly },
      ];
      return changeEntries(ports, { ...facts, changes });
    }),
};

export const configExport: Command = {
  name: "config export",
  summary: "print the stored configuration as YAML, without credentials",
  positionals: [],
  flags: CONFIG_FLAG,
  run: (invocation, context) =>
    withStore(invocation, context, async (store) => {
      const rows = await store.configuration.read();
      context.stdout.write(rows?.version.document || "{}\n");
    }),
};

export const configImport: Command = {
  name: "config import",
  summary: "replace the whole stored configuration by a file; - is standard input",
  positionals: ["FILE"],
  flags: CHANGE_FLAGS,
  run: (invocation, context) =>
    change(invocation, context, async (ports, facts) => {
      const [file = ""] = invocation.positionals;
      const document = file === "-" ? await readInput(context) : readText(file);
      return importDocument(ports, { ...facts, document });
    }),
};

export const configVersions: Command = {
  name: "config versions",
  summary: "list the versions of the stored configuration, or show the changes of one of them",
  positionals: [],
  flags: { show: { value: "VERSION", help: "what this version has changed" }, ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async ({ configuration: store }) => {
      const { show } = invocation.flags;
      const asJson = invocation.switches.has("json");
      if (show !== undefined) {
        const found = await findVersion({ store }, readVersion(show, "--show"));
        const before = (await store.find(found.version - 1)) ?? NOTHING_STORED;
        const differences = differencesOf(entriesOf(before), entriesOf(found));
        if (asJson) return writeJson(context.stdout, differences);
        context.stdout.write(differences.map(describeDifference).join(""));
        return;
      }
      const versions = await store.list({ before: undefined, limit: 100 });
      const rows = versions.map(({ version, at_ms: atMs, actor_id: actor, comment }) => ({
        version,
        time: new Date(atMs).toISOString(),
        by: actor,
        comment,
      }));
      if (asJson) return writeJson(context.stdout, rows);
      const lines = rows.map(({ version, time, by, comment }) => [
        String(version),
        time,
        by ?? "command line",
        comment,
      ]);
      context.stdout.write(`${formatTable([["VERSION", "TIME", "BY", "COMMENT"], ...lines])}\n`);
    }),
};

export const configRollback: Command = {
  name: "config rollback",
  summary: "make a new version of the stored configuration from an earlier one; credentials stay",
  positionals: ["VERSION"],
  flags: CHANGE_FLAGS,
  run: (invocation, context) =>
    change(invocation, context, (ports, facts) =>
      rollBack(ports, { ...facts, to: readVersion(invocation.positionals[0] ?? "", "VERSION") }),
    ),
};

type Change = (ports: StoredPorts, facts: ChangeFacts) => Promise<ChangeResult>;

/** Makes a change to the latest version, and prints the result. */
function change(invocation: Invocation, context: CliContext, make: Change): Promise<number> {
  return withStore(invocation, { ...context, createsDatabase: true }, async (store, config, source) => {
    const ports = portsOf(store, { config, source, output: context });
    const validateOnly = invocation.switches.has("check");
    const comment = invocation.flags["comment"] ?? "";
    const expected = await store.configuration.latest();
    const { version, warnings } = await describeFailure(make(ports, { expected, comment, validateOnly, actor: ACTOR }));
    for (const warning of warnings) context.stderr.write(`warning: ${warning}\n`);
    const unchanged = validateOnly ? "The change is valid.\n" : "Nothing has changed.\n";
    context.stdout.write(version === undefined ? unchanged : `The stored configuration has version ${version}.\n`);
  });
}

function portsOf(
  { configuration, audit }: Parameters<Parameters<typeof withStore>[2]>[0],
  { config, source, output }: { readonly config: Config; readonly source: ConfigSource; readonly output: CliContext },
): StoredPorts {
  return {
    store: configuration,
    cipher: credentialCipherOf({ ...config, providers: [] }),
    inForce: () => config,
    source: () => source,
    clock: systemClock,
    log: commandLog(audit, output),
  };
}

/** Every invalid field on a line of its own. */
async function describeFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Failure) || error.violations.length < 2) throw error;
    const lines = error.violations.map(({ field, description }) => `  ${field}: ${description}`);
    throw new Error(["the change is not valid:", ...lines].join("\n"), { cause: error });
  }
}

/** Section and name. Throws UsageError. */
function placeOf({ positionals: [word = "", name = ""] }: Invocation): { section: StoredSection; name: string } {
  const section = STORED_SECTIONS.find((one) => one === word);
  if (section === undefined) throw new UsageError(`${SECTION} is one of ${STORED_SECTIONS.join(", ")}`);
  return { section, name };
}

/** The given credential; none without a flag. */
async function readCredential({ flags, switches }: Invocation, context: CliContext): Promise<string[]> {
  const variable = flags["credential-env"];
  if (switches.has("credential-stdin")) {
    if (variable !== undefined) throw new UsageError("--credential-env cannot be beside --credential-stdin");
    return [await readSecret(context, "--credential-stdin")];
  }
  if (variable === undefined) return [];
  const secret = context.env[variable];
  if (!secret) throw new UsageError(`--credential-env: the environment variable ${variable} is not set`);
  return [secret];
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

function readInput({ readInput: read }: CliContext): Promise<string> {
  return read?.() ?? readStandardInput(4 * MAX_STORED_LENGTH, "the document");
}

/** Throws UsageError. */
function readVersion(text: string, what: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`${what} is the number of a version; parley config versions lists them`);
}

function describeDifference({ section, name, before, after }: ReturnType<typeof differencesOf>[number]): string {
  const lines = (sign: string, text: string | undefined): string[] =>
    text === undefined ? [] : text.split("\n").map((line) => `${sign} ${line}`);
  return [`${section}.${name}`, ...lines("-", before), ...lines("+", after), ""].join("\n");
}

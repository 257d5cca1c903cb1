import { splitHosts } from "../net/hosts.ts";
import { ConfigError, type ConfigPath, formatPath, type Problem, type Report } from "./config-error.ts";
import type { Config } from "./config.ts";
import { describeIssue, toProblems } from "./describe.ts";
import { type ConfigDocument, interpolate, isRecord, MAX_PROBLEMS, pathKey, readDocument } from "./document.ts";
import type { ReadKeys } from "./encryption-keys.ts";
import { type Environment, type Override, readOverrides } from "./environment.ts";
import { type ModelLists, NO_LISTS, takeImports } from "./imports.ts";
import { readMetricExport } from "./metrics.ts";
import { proxyProblem, proxyVariable } from "./proxies.ts";
import { withPresets } from "./presets.ts";
import { resolve } from "./resolve.ts";
import { KEY_FILE, SECRET_HEADER } from "./scalars.ts";
import { fileSchema } from "./schema.ts";
import {
  groupByEntry,
  isNothingStored,
  type LeftOut,
  mergeStored,
  STORED_NAME,
  type StoredConfiguration,
  type StoredPart,
} from "./stored.ts";
import { documentOf } from "./stored-document.ts";
import { readTraceExport } from "./tracing.ts";

/** Sources of a configuration. */
export interface ConfigSource {
  /** The file's name, for messages; undefined when there is no file. */
  readonly file: string | undefined;
  /** The file's content. Ignored when there is no file. */
  readonly text: string;
  readonly env: Environment;
  /** The stored configuration of the database; undefined where none is used. */
  readonly stored?: StoredConfiguration | undefined;
  /** Lists of models of the providers that are imported from, by their names. Default: none is known. */
  readonly lists?: ModelLists | undefined;
  /** The keys of encryption that are in files, or printed by commands. Default: none, which is a mistake where one is configured. */
  readonly keys?: ReadKeys | undefined;
  /** As `LoadOptions.unused`. */
  readonly unused?: readonly string[] | undefined;
}

/**
 * Builds the complete, frozen configuration from its sources. Throws ConfigError unless the file is valid by itself. Stored entries that
 * are not valid, alone or beside the file, are left out and listed in `Config.stored`. Does no I/O.
 */
export function parseConfig(source: ConfigSource): Config {
  const { stored } = source;
  const alone = parseAlone(source);
  if (stored === undefined) return alone;
  const { version, credentials } = stored;
  const complete = (config: Config, leftOut: readonly LeftOut[]): Config =>
    deepFreeze({ ...config, stored: { version, leftOut } });
  if (isNothingStored(stored)) return complete(alone, []);
  const { enabled, allowPrivate: allowsPrivate } = alone.storedConfiguration;
  const leftOut: LeftOut[] = [];
  const document = enabled ? readable(stored, (problems) => leftOut.push({ path: [], problems })) : NO_ENTRIES;
  for (;;) {
    const part = {
      credentials,
      allowsPrivate,
      leftOut: new Set(leftOut.map(({ path }) => pathKey(path))),
      wasStored: () => true,
    };
    const parsed = parseParts(source, { ...part, document });
    const { config, problems, describe } = parsed;
    if (config !== undefined && problems.length === 0) return complete(config, leftOut);
    const next = chooseLeftOut(parsed, () => parseParts(source, { ...part, document: NO_ENTRIES }));
    if (next.length === 0) throw unusable(source, problems.map(describe));
    leftOut.push(...next);
  }
}

/** The document of a stored configuration, empty when it cannot be read. */
function readable(stored: StoredConfiguration, fail: (problems: readonly string[]) => void): ConfigDocument {
  try {
    return documentOf(stored);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    fail(error.lines);
    return NO_ENTRIES;
  }
}

/**
 * Chooses what to leave out because of problems: the stored entries that have them. Else the entries of the file that need
 * the simulator, which is there by default only while nothing is stored. Else a section, since a stored entry contradicts
 * the file.
 */
function chooseLeftOut({ problems, isStored, sections, describe }: Parsed, withoutStored: () => Parsed): LeftOut[] {
  const toLeftOut = (groups: ReturnType<typeof groupByEntry>): LeftOut[] =>
    groups.map((group) => ({ path: group.path, problems: group.problems.map(describe) }));
  const ofStored = groupByEntry(problems, isStored);
  if (ofStored.length > 0) return toLeftOut(ofStored);
  const ofFile = groupByEntry(withoutStored().problems, isOfSimulator);
  if (ofFile.length > 0) return toLeftOut(ofFile);
  const section = ["aliases", "models", "providers", "timeouts", "limits", "retries", "breaker"].find((one) =>
    sections.has(one),
  );
  return section === undefined ? [] : [{ path: [section], problems: problems.map(describe) }];
}

/** Whether an entry of the file can name models of the simulator. */
function isOfSimulator([section, name]: ConfigPath): boolean {
  return name !== undefined && (section === "models" || section === "aliases");
}

/** A mistake in a stored document, or one that it causes beside the file. */
export interface StoredProblem extends Problem {
  /** `text` after its place: file or `stored configuration`, line and column, and path. */
  readonly line: string;
}

/**
 * The configuration with all entries of a stored document, and the document's problems, at most MAX_PROBLEMS. `before`: the
 * paths of the entries that are stored so far. Throws ConfigError for a document that cannot be read, and for a file that is not valid.
 */
export function checkStored(
  source: ConfigSource & { readonly stored: StoredConfiguration },
  before: readonly ConfigPath[],
): {
  readonly config: Config | undefined;
  readonly problems: readonly StoredProblem[];
} {
  const stored = new Set(before.map(pathKey));
  const { credentials } = source.stored;
  const alone = parseAlone(source);
  if (isNothingStored(source.stored)) return { config: alone, problems: [] };
  const { config, problems, describe } = parseParts(source, {
    document: documentOf(source.stored),
    credentials,
    leftOut: new Set(),
    allowsPrivate: alone.storedConfiguration.allowPrivate,
    wasStored: (entry) => stored.has(entry),
  });
  const shown = problems.slice(0, MAX_PROBLEMS);
  return { config, problems: shown.map((problem) => ({ ...problem, line: describe(problem) })) };
}

function parseAlone(source: ConfigSource): Config {
  const { config, problems, describe } = parseParts(source, undefined);
  if (config !== undefined && problems.length === 0) return deepFreeze(config);
  throw unusable(source, problems.map(describe));
}

function unusable({ file }: ConfigSource, problems: readonly string[]): ConfigError {
  return new ConfigError(file === undefined ? "The environment cannot be used:" : `${file} cannot be used:`, problems);
}

/** The configuration of a file and a stored part. It is meaningless with problems. */
interface Parsed {
  readonly config: Config | undefined;
  readonly problems: readonly Problem[];
  /** Whether a path leads into the stored part. */
  readonly isStored: (path: ConfigPath) => boolean;
  /** The sections with stored entries that are in force. */
  readonly sections: ReadonlySet<string>;
  /** The problem after its place. */
  readonly describe: (problem: Problem) => string;
}

/** Throws ConfigError for a file that cannot be read. */
function parseParts(
  { file, text, env, unused, keys = {}, lists = NO_LISTS }: ConfigSource,
  part: StoredPart | undefined,
): Parsed {
  const document = file === undefined ? undefined : readDocument(text, file);
  const { value: given, patterns: ofFile } = takeImports(document?.value ?? {});
  const filled = interpolate(withPresets(given), env, unused);
  const problems: Problem[] = [...filled.problems];
  const report: Report = (path, problem) => problems.push({ path, text: problem });

  const reportVariable = (variable: string, problem: string): void => {
    // Variables for both traces and metrics would be reported twice.
    if (problems.some((other) => other.variable === variable && other.text === problem)) return;
    problems.push({ path: [], text: problem, variable });
  };
  const overrides = readOverrides(env, providersOf(filled.value), reportVariable);
  const traceExport = readTraceExport(env, reportVariable);
  const metricExport = readMetricExport(env, reportVariable);
  const proxy = proxyVariable(env);
  const flaw = proxy && proxyProblem(proxy.value);
  if (flaw !== undefined) problems.push({ path: [], text: flaw, variable: proxy!.variable });
  const merged = mergeStored(part, { file: filled.value, patterns: ofFile, env, lists, report });
  const value = overrides.reduce(override, merged.value);
  const checked = fileSchema.safeParse(value, { error: describeIssue });
  // What stands in place of a missing variable's value says nothing more.
  const unfilled = new Set(filled.problems.map(({ path }) => pathKey(path)));
  const found = checked.error?.issues.flatMap(toProblems) ?? [];
  problems.push(...found.filter(({ path }) => !unfilled.has(pathKey(path))));
  const config =
    checked.data &&
    resolve(
      checked.data,
      {
        file,
        secretsInFile: holdsSecrets(document?.value),
        env,
        traceExport,
        metricExport,
        keys,
        patterns: merged.patterns,
        lists,
        storedProviders: merged.providers,
        simulatesByDefault: part === undefined,
        isStored: merged.isStored,
      },
      report,
    );
  const { isStored, sections } = merged;
  const place = createPlaces({ document, stored: part?.document, isStored, overrides, variables: filled.variables });
  return { config, problems, isStored, sections, describe: (problem) => `${place(problem)}${problem.text}` };
}

const NO_ENTRIES = readDocument("{}", STORED_NAME);

/** Whether the file's own text holds secrets: credentials that are not written as `${NAME}`. */
function holdsSecrets(value: unknown): boolean {
  const isLiteral = (text: unknown): boolean => typeof text === "string" && text !== "" && !text.includes("${");
  const at = (part: unknown, ...path: readonly string[]): unknown =>
    path.reduce((inner, key) => (isRecord(inner) ? inner[key] : undefined), part);
  const hasPassword = (url: unknown): boolean => isLiteral(url) && Boolean(splitHosts(url as string)?.[0]?.password);
  const isSecret = (key: unknown): boolean => isLiteral(key) && !(key as string).startsWith(KEY_FILE);
  const providers = at(value, "providers");
  const isSecretive = (provider: unknown): boolean => {
    const [keys, headers] = [at(provider, "api_keys"), at(provider, "headers")];
    const secretHeaders = isRecord(headers) ? Object.entries(headers).filter(([name]) => SECRET_HEADER.test(name)) : [];
    return (
      (Array.isArray(keys) && keys.some(isSecret)) ||
      secretHeaders.some(([, text]) => isLiteral(text)) ||
      hasPassword(at(provider, "proxy"))
    );
  };
  return (
    (isRecord(providers) && Object.values(providers).some(isSecretive)) ||
    isSecret(at(value, "sign_in", "oidc", "client_secret")) ||
    hasPassword(at(value, "database", "url")) ||
    hasPassword(at(value, "database", "read_url")) ||
    hasPassword(at(value, "redis", "url")) ||
    isLiteral(at(value, "redis", "sentinel", "password")) ||
    isLiteral(at(value, "responses", "encryption_key")) ||
    isLiteral(at(value, "content", "encryption_key")) ||
    isLiteral(at(value, "account_credentials", "encryption_key")) ||
    isLiteral(at(value, "account_credentials", "previous_encryption_key")) ||
    isLiteral(at(value, "outage", "encryption_key")) ||
    isLiteral(at(value, "smtp", "password"))
  );
}

/** Names of the providers in the file, before it is checked. */
function providersOf(value: unknown): ReadonlySet<string> {
  const providers = isRecord(value) ? value["providers"] : undefined;
  return new Set(isRecord(providers) ? Object.keys(providers) : []);
}

/** Copies `value` with the override at its path. A part on the way that is no map is left for the schema to refuse. */
function override(value: unknown, { path, value: replacement }: Pick<Override, "path" | "value">): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return replacement;
  if (value !== undefined && !isRecord(value)) return value;
  return { ...value, [step]: override(value?.[step], { path: rest, value: replacement }) };
}

interface PlaceParts {
  readonly document: ConfigDocument | undefined;
  readonly stored: ConfigDocument | undefined;
  readonly isStored: (path: ConfigPath) => boolean;
  readonly overrides: readonly Override[];
  readonly variables: ReadonlyMap<string, readonly string[]>;
}

/** Describes the place of a problem: the variable that set it, or its line in the file and the variables used there. */
function createPlaces(parts: PlaceParts): (problem: Problem) => string {
  const { document, stored, isStored, overrides, variables } = parts;
  return ({ path, atKey, variable }) => {
    const setBy = variable ?? overrides.find((candidate) => startsWith(path, candidate.path))?.variable;
    if (setBy !== undefined) return `${setBy}: `;
    if (stored !== undefined && isStored(path))
      return `${stored.locate(path, atKey ? "key" : "value")}: ${formatPath(path)}: `;
    if (document === undefined) return `${formatPath(path)}: `;
    const used = variables.get(pathKey(path))?.map((name) => `\${${name}}`) ?? [];
    const from = used.length > 0 ? ` (from ${used.join(", ")})` : "";
    const name = path.length > 0 ? ` ${formatPath(path)}${from}:` : "";
    return `${document.locate(path, atKey ? "key" : "value")}:${name} `;
  };
}

function startsWith(path: ConfigPath, prefix: ConfigPath): boolean {
  return prefix.every((step, index) => path[index] === step);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

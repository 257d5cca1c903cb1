import { splitHosts } from "../net/hosts.ts";
import { ConfigError, type ConfigPath, formatPath, type Problem, type Report } from "./config-error.ts";
import type { Config } from "./config.ts";
import { describeIssue, toProblems } from "./describe.ts";
import { type ConfigDocument, interpolate, isRecord, pathKey, readDocument } from "./document.ts";
import { type Environment, type Override, readOverrides } from "./environment.ts";
import { type ModelLists, takeImports } from "./imports.ts";
import { readMetricExport } from "./metrics.ts";
import { proxyProblem, proxyVariable } from "./proxies.ts";
import { withPresets } from "./presets.ts";
import { resolve } from "./resolve.ts";
import { KEY_FILE } from "./scalars.ts";
import { fileSchema } from "./schema.ts";
import { readTraceExport } from "./tracing.ts";

/** Sources of a configuration. */
export interface ConfigSource {
  /** The file's name, for messages; undefined when there is no file. */
  readonly file: string | undefined;
  /** The file's content. Ignored when there is no file. */
  readonly text: string;
  readonly env: Environment;
  /** Lists of models of the providers that the file imports from, by their names. Default: none is known. */
  readonly lists?: ModelLists | undefined;
  /** As `LoadOptions.unused`. */
  readonly unused?: readonly string[] | undefined;
}

/** Builds the complete, frozen configuration from a text and an environment. Throws ConfigError. Does no I/O. */
export function parseConfig({ file, text, env, unused, lists = NO_LISTS }: ConfigSource): Config {
  const document = file === undefined ? undefined : readDocument(text, file);
  const { value: given, patterns } = takeImports(document?.value ?? {});
  const filled = interpolate(withPresets(given), env, unused);
  const problems: Problem[] = [...filled.problems];
  const report: Report = (path, problem) => problems.push({ path, text: problem });

  const reportVariable = (variable: string, problem: string): void => {
    // Some variables are for traces and for metrics.
    if (problems.some((other) => other.variable === variable && other.text === problem)) return;
    problems.push({ path: [], text: problem, variable });
  };
  const overrides = readOverrides(env, providersOf(filled.value), reportVariable);
  const traceExport = readTraceExport(env, reportVariable);
  const metricExport = readMetricExport(env, reportVariable);
  const proxy = proxyVariable(env);
  const flaw = proxy && proxyProblem(proxy.value);
  if (flaw !== undefined) problems.push({ path: [], text: flaw, variable: proxy!.variable });
  const value = overrides.reduce(override, filled.value);
  const checked = fileSchema.safeParse(value, { error: describeIssue });
  if (checked.error !== undefined) problems.push(...checked.error.issues.flatMap(toProblems));
  const facts = { file, secretsInFile: holdsSecrets(document?.value), env, traceExport, metricExport, patterns, lists };
  const config = checked.data && resolve(checked.data, facts, report);

  if (config === undefined || problems.length > 0) {
    const place = createPlaces({ document, overrides, variables: filled.variables });
    const summary = file === undefined ? "The environment cannot be used:" : `${file} cannot be used:`;
    throw new ConfigError(
      summary,
      problems.map((problem) => `${place(problem)}${problem.text}`),
    );
  }
  return deepFreeze(config);
}

const NO_LISTS: ModelLists = new Map();

/** Header names whose values are likely to be secrets. */
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i;

/** Whether the file's own text holds secrets: credentials that are not written as `${NAME}`. */
function holdsSecrets(value: unknown): boolean {
  const isLiteral = (text: unknown): boolean => typeof text === "string" && text !== "" && !text.includes("${");
  const at = (part: unknown, ...path: readonly string[]): unknown =>
    path.reduce((inner, key) => (isRecord(inner) ? inner[key] : undefined), part);
  const hasPassword = (url: unknown): boolean => isLiteral(url) && Boolean(splitHosts(url as string)?.[0]?.password);
  const providers = at(value, "providers");
  const isSecretive = (provider: unknown): boolean => {
    const [keys, headers] = [at(provider, "api_keys"), at(provider, "headers")];
    const secretHeaders = isRecord(headers) ? Object.entries(headers).filter(([name]) => SECRET_HEADER.test(name)) : [];
    const isSecret = (key: unknown): boolean => isLiteral(key) && !(key as string).startsWith(KEY_FILE);
    return (
      (Array.isArray(keys) && keys.some(isSecret)) ||
      secretHeaders.some(([, text]) => isLiteral(text)) ||
      hasPassword(at(provider, "proxy"))
    );
  };
  return (
    (isRecord(providers) && Object.values(providers).some(isSecretive)) ||
    hasPassword(at(value, "database", "url")) ||
    hasPassword(at(value, "database", "read_url")) ||
    hasPassword(at(value, "redis", "url")) ||
    isLiteral(at(value, "redis", "sentinel", "password")) ||
    isLiteral(at(value, "responses", "encryption_key")) ||
    isLiteral(at(value, "account_credentials", "encryption_key")) ||
    isLiteral(at(value, "outage", "encryption_key"))
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
  readonly overrides: readonly Override[];
  readonly variables: ReadonlyMap<string, readonly string[]>;
}

/** Describes the place of a problem: the variable that set it, or its line in the file and the variables used there. */
function createPlaces({ document, overrides, variables }: PlaceParts): (problem: Problem) => string {
  return ({ path, atKey, variable }) => {
    const setBy = variable ?? overrides.find((candidate) => startsWith(path, candidate.path))?.variable;
    if (setBy !== undefined) return `${setBy}: `;
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

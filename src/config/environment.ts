import type { ConfigPath } from "./config-error.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";

/** Environment variables. Only `load.ts` reads those of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that replaces a setting of the file. */
export interface Override {
  readonly variable: string;
  readonly path: ConfigPath;
  readonly value: unknown;
}

/** Reports a problem of a variable. */
type ReportVariable = (variable: string, text: string) => void;

const SETTINGS: Readonly<Record<string, ConfigPath>> = {
  PARLEY_HTTP_LISTEN: ["http", "listen"],
  PARLEY_GRPC_LISTEN: ["grpc", "listen"],
  PARLEY_OPERATIONS_LISTEN: ["operations", "listen"],
  PARLEY_HTTP_ALLOW_PUBLIC: ["http", "allow_public"],
  PARLEY_GRPC_ALLOW_PUBLIC: ["grpc", "allow_public"],
  PARLEY_OPERATIONS_ALLOW_PUBLIC: ["operations", "allow_public"],
  PARLEY_WORKERS: ["workers"],
  PARLEY_DATA_DIR: ["data_dir"],
  PARLEY_DATABASE_URL: ["database", "url"],
  PARLEY_DATABASE_LISTEN_URL: ["database", "listen_url"],
  PARLEY_REDIS_URL: ["redis", "url"],
};

/**
 * Reads the settings that the environment overrides. `fileProviders` are the providers of the file, which names their
 * variables itself. Other variables are ignored: orchestrators set ones that start with the service's name.
 */
export function readOverrides(
  env: Environment,
  fileProviders: ReadonlySet<string>,
  report: ReportVariable,
): Override[] {
  const overrides: Override[] = [];
  for (const [variable, path] of Object.entries(SETTINGS)) {
    const value = read(env, variable, report);
    if (value !== undefined) overrides.push({ variable, path, value: typed(variable, value) });
  }
  for (const provider of Object.keys(BUILT_IN_PROVIDERS)) {
    if (!fileProviders.has(provider)) overrides.push(...readProvider(provider, env, report));
  }
  return overrides;
}

/** The value in its setting's type. Text of a wrong type is left for the schema to refuse. */
function typed(variable: string, value: string): string | number | boolean {
  if (variable === "PARLEY_WORKERS" && /^\d{1,9}$/.test(value)) return Number(value);
  if (variable.endsWith("_ALLOW_PUBLIC") && /^(true|false)$/.test(value)) return value === "true";
  return value;
}

function readProvider(provider: string, env: Environment, report: ReportVariable): Override[] {
  const prefix = provider.toUpperCase();
  const key = { variable: `${prefix}_API_KEY`, value: read(env, `${prefix}_API_KEY`, report) };
  const baseUrl = { variable: `${prefix}_BASE_URL`, value: read(env, `${prefix}_BASE_URL`, report) };
  if (key.value === undefined) {
    if (baseUrl.value !== undefined) report(baseUrl.variable, `it needs ${key.variable} too`);
    return [];
  }
  const overrides: Override[] = [
    { variable: key.variable, path: ["providers", provider, "api_keys"], value: [key.value] },
  ];
  if (baseUrl.value !== undefined) {
    overrides.push({ variable: baseUrl.variable, path: ["providers", provider, "base_url"], value: baseUrl.value });
  }
  return overrides;
}

/** A variable that is set but empty is a mistake where it is set, not a request for the default. */
function read(env: Environment, variable: string, report: ReportVariable): string | undefined {
  const value = env[variable];
  if (value !== "") return value;
  report(variable, "it is set but empty; give it a value or unset it");
  return undefined;
}

import type { ConfigPath } from "./config-error.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";

/** Environment variables. Only `load.ts` reads the process's own. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable that takes the place of a setting of the file. */
export interface Override {
  readonly variable: string;
  readonly path: ConfigPath;
  readonly value: unknown;
}

/** Notes what is wrong with a variable, by name. */
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
  PARLEY_REDIS_URL: ["redis", "url"],
};

/**
 * What the environment sets. `fileProviders` are the providers that the file configures: for those the file says itself
 * which variables it uses. Other variables are left alone: orchestrators invent ones that start with the service's name.
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

/** The value of a variable's setting. Text of the wrong kind is left for the schema to refuse. */
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
    if (baseUrl.value !== undefined) report(baseUrl.variable, `it needs ${key.variable} beside it`);
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

/** A variable that is set but empty is a mistake in whatever sets it, not a wish for the default. */
function read(env: Environment, variable: string, report: ReportVariable): string | undefined {
  const value = env[variable];
  if (value !== "") return value;
  report(variable, "it is set but empty; give it a value or unset it");
  return undefined;
}

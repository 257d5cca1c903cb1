import { z } from "zod";
import type { ConfigPath } from "./config-error.ts";
import { BUILT_IN_PROVIDERS } from "./models.ts";
import { fileSchema } from "./schema.ts";

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

/** A setting that a variable can replace. */
export interface VariableSetting {
  /** Its key in capitals, with `_` for dots, after `PARLEY_`: `PARLEY_HTTP_TLS_CERT_FILE`. */
  readonly variable: string;
  readonly path: readonly string[];
  /** Whether the value is text as it stands. Otherwise it is a number, `true` or `false`, or a list or map in JSON. */
  readonly isText: boolean;
  /** Whether the value is a list or a map, which is JSON. */
  readonly isJson: boolean;
}

/** Sections whose keys are names that users choose. Their settings are in the file only. */
const OF_FILE: ReadonlySet<string> = new Set(["providers", "models", "aliases"]);

/** Every setting that has a variable: all but those of providers, models and aliases. */
export const VARIABLE_SETTINGS: readonly VariableSetting[] = Object.entries(fileSchema.shape)
  .filter(([section]) => !OF_FILE.has(section))
  .flatMap(([section, schema]) => listSettings([section], schema));

function listSettings(path: readonly string[], schema: z.core.$ZodType): VariableSetting[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodObject)
    return Object.entries(inner.shape).flatMap(([key, value]) => listSettings([...path, key], value as z.ZodType));
  const isText = inner instanceof z.ZodString || inner instanceof z.ZodEnum;
  const isJson = inner instanceof z.ZodArray || inner instanceof z.ZodRecord;
  return [{ variable: `PARLEY_${path.join("_").toUpperCase()}`, path, isText, isJson }];
}

/** The type inside defaults, optional values and conversions. */
function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in);
  const isWrapper =
    schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional;
  return isWrapper || schema instanceof z.ZodExactOptional ? unwrap(schema.unwrap()) : schema;
}

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
  for (const { variable, path, isText, isJson } of VARIABLE_SETTINGS) {
    const text = read(env, variable, report);
    if (text === undefined) continue;
    const value = isText ? text : parse(text);
    if (value === undefined || (isJson && typeof value === "string"))
      report(variable, 'this is not JSON; write a list as ["a", "b"], a map as {"key": "value"}');
    else overrides.push({ variable, path, value });
  }
  for (const provider of Object.keys(BUILT_IN_PROVIDERS)) {
    if (!fileProviders.has(provider)) overrides.push(...readProvider(provider, env, report));
  }
  return overrides;
}

/** Undefined for a list or a map that is not JSON. Text of another wrong type is left for the schema to refuse. */
function parse(text: string): unknown {
  if (/^(true|false|-?\d{1,15}(\.\d{1,9})?)$/.test(text)) return JSON.parse(text);
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text, refuseProto);
  } catch {
    // Its message quotes the text, which may hold a secret.
    return undefined;
  }
}

/** The schema's records skip this name silently, such as in the claims of a token; no configured key may be skipped. */
function refuseProto(key: string, value: unknown): unknown {
  if (key === "__proto__") throw new Error("this cannot be a name");
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

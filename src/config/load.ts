import { existsSync, readFileSync } from "node:fs";
import type { Config } from "./config.ts";
import { ConfigError } from "./config-error.ts";
import { readKeyOf } from "./encryption-keys.ts";
import type { Environment } from "./environment.ts";
import { type ConfigSource, parseConfig } from "./parse.ts";
import { UNREAD } from "./stored.ts";

export interface LoadOptions {
  /** File to read. Default: `PARLEY_CONFIG`, else `parley.yaml` in the working directory if it exists. */
  readonly file?: string | undefined;
  /** Default: the process's environment, which is read nowhere else. */
  readonly env?: Environment | undefined;
  /** Sections whose environment variables may be unset, because nothing uses them. Default: none. */
  readonly unused?: readonly string[] | undefined;
}

const DEFAULT_FILE = "parley.yaml";

const READ_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "it may not be read by this user",
  EISDIR: "it is a directory",
  ENOENT: "there is no such file",
};

/**
 * Reads the configuration file, if any, and the environment. Throws ConfigError with a message for people. On a reload the
 * running server then keeps its old Config. Keys of encryption that are in files, or printed by commands, are not read.
 */
export function loadConfig(options: LoadOptions = {}): Config {
  return parseConfig({ ...readSource(options), keys: "unread" });
}

/** Reads the configuration file, if any, and does not parse it. */
export function readSource({ file, env = process.env, unused }: LoadOptions = {}): ConfigSource {
  const chosen = file ?? chooseFile(env);
  return { file: chosen, text: chosen === undefined ? "" : readText(chosen), env, unused };
}

/**
 * The source with the keys of encryption that are in files, or printed by commands: a key that cannot be read is a problem
 * of the configuration. Throws ConfigError where it has others, before a command runs.
 */
export async function withKeys(source: ConfigSource): Promise<ConfigSource> {
  const { keySources } = parseConfig({ ...source, stored: UNREAD, keys: "unread" });
  const read = keySources.map(async (each) => [each.setting, await readKeyOf(each, source.env)] as const);
  return { ...source, keys: Object.fromEntries(await Promise.all(read)) };
}

function chooseFile(env: Environment): string | undefined {
  const named = env["PARLEY_CONFIG"];
  if (named !== "") return named ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
  throw new ConfigError("The environment cannot be used:", [
    "PARLEY_CONFIG: it is set but empty; name a file or unset it",
  ]);
}

function readText(file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    const code = (error as { code?: string }).code ?? "";
    const reason = code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is not UTF-8 text" : READ_PROBLEMS[code];
    throw new ConfigError("The configuration cannot be read:", [
      `${file}:1:1: ${reason ?? `reading failed (${code})`}`,
    ]);
  }
}

/** The environment of this process; read nowhere else. */
export function processEnvironment(): Environment {
  return process.env;
}

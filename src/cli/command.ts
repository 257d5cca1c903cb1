import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import type { Role } from "../gateway/role.ts";

/** Where a command's text goes. */
export interface Output {
  write(text: string): unknown;
}

/** What commands may use of the world. */
export interface CliContext {
  readonly env: Environment;
  /** Results, and nothing else. */
  readonly stdout: Output;
  /** Everything that is only for people. */
  readonly stderr: Output;
  /** Runs the server until it is told to stop; answers with the exit code. */
  serve(config: Config, role: Role): Promise<number>;
  /** When a command that runs on is to end. Default: at SIGINT or SIGTERM. */
  readonly untilStopped?: () => Promise<void>;
  /** All that stands on standard input. Default: the process's own. */
  readonly readInput?: () => Promise<string>;
}

/** One flag. `value` is what the help calls its value; without it the flag is a switch. */
export interface Flag {
  readonly value?: string;
  readonly help: string;
}

/** What the command line said. Only what was given is present; the flags of a command are the only keys. */
export interface Invocation {
  readonly flags: Readonly<Record<string, string>>;
  readonly switches: ReadonlySet<string>;
  /** As many as the command names. */
  readonly positionals: readonly string[];
}

export interface Command {
  /** One or two words. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Names of the arguments, all required. */
  readonly positionals: readonly string[];
  readonly flags: Readonly<Record<string, Flag>>;
  /** Answers with the exit code. Whatever it throws is shown by its message. */
  run(invocation: Invocation, context: CliContext): Promise<number>;
}

/** The command line is wrong; the message says how. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The flags that several commands share. */
export const CONFIG_FLAG = {
  config: { value: "FILE", help: "configuration file (default: $PARLEY_CONFIG, else ./parley.yaml if it exists)" },
} as const satisfies Record<string, Flag>;

export const JSON_FLAG = { json: { help: "print one JSON document" } } as const satisfies Record<string, Flag>;

/** Writes one JSON document. */
export function writeJson(output: Output, value: unknown): void {
  output.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

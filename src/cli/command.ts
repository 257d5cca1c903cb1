import type { Environment } from "../config/environment.ts";
import type { ConfigSource } from "../config/parse.ts";
import type { Role } from "../gateway/role.ts";

/** Destination of a command's text. */
export interface Output {
  write(text: string): unknown;
}

/** Environment of the commands; replaced in tests. */
export interface CliContext {
  readonly env: Environment;
  /** Results only. */
  readonly stdout: Output;
  /** Messages for people. */
  readonly stderr: Output;
  /** Runs the server until it is stopped; answers with the exit code. */
  serve(source: ConfigSource, role: Role): Promise<number>;
  /** Resolves when a long-running command should end. Default: at SIGINT or SIGTERM. */
  readonly untilStopped?: () => Promise<void>;
  /** Reads all of standard input. Default: of this process. */
  readonly readInput?: () => Promise<string>;
}

/** One flag. `value` is what the help calls its value; without it the flag is a switch. */
export interface Flag {
  readonly value?: string;
  readonly help: string;
}

/** The parsed command line. Only given flags are present, and only those of the command. */
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
  /** Answers with the exit code. Of a thrown error only the message is shown. */
  run(invocation: Invocation, context: CliContext): Promise<number>;
}

/** The command line is wrong; the message says what is wrong. */
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

/**
 * All of standard input, at most `maxBytes`. Throws an Error that begins with `what` for more. A person at a terminal is told that the
 * command waits for it.
 */
export async function readStandardInput(maxBytes: number, what: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`${what}: type or paste it here, then press Enter and Ctrl-D.\n`);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size > maxBytes) throw new Error(`${what}: standard input has more than ${maxBytes} bytes`);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Limit of a secret from standard input. */
const MAX_SECRET_BYTES = 4096;

/**
 * Reads a secret from standard input, without its final line feed. Never an argument, which every user of the machine can see. `flag`:
 * for errors. Throws when there is more than one line, or nothing.
 */
export async function readSecret({ readInput }: Pick<CliContext, "readInput">, flag: string): Promise<string> {
  const input = await (readInput?.() ?? readStandardInput(MAX_SECRET_BYTES, flag));
  const secret = input.replace(/\r?\n$/, "");
  if (secret === "") throw new Error(`${flag}: standard input is empty`);
  if (secret.includes("\n")) throw new Error(`${flag}: standard input has more than one line`);
  return secret;
}

/** Exit codes. */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The configuration is wrong (EX_CONFIG of sysexits.h). */
  config: 78,
} as const;

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;

const MAX_MS = 10 * 366 * UNITS_MS.d;

/** Parses `90m`, `12h`, `30d` or `4w` into milliseconds, above zero and at most ten years. Undefined for all else. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,7})([mhdw])$/.exec(text);
  if (match === null) return undefined;
  const durationMs = Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
  return durationMs > 0 && durationMs <= MAX_MS ? durationMs : undefined;
}

import { execFile, type ExecFileException } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import type { Environment } from "./environment.ts";
import { encryptionKey } from "./scalars.ts";

/** Sections and names of the settings that are keys of encryption. Each has another one for a file, and one for a command. */
export const KEY_SETTINGS = [
  ["outage", "encryption_key"],
  ["responses", "encryption_key"],
  ["content", "encryption_key"],
  ["account_credentials", "encryption_key"],
  ["account_credentials", "previous_encryption_key"],
] as const;

export type KeySetting = `${(typeof KEY_SETTINGS)[number][0]}.${(typeof KEY_SETTINGS)[number][1]}`;

/** Source of a key, in place of its setting. */
export interface KeySource {
  /** Such as `responses.encryption_key`. */
  readonly setting: string;
  /** Absolute path. */
  readonly file?: string | undefined;
  /** A program and its arguments. */
  readonly command?: readonly string[] | undefined;
}

/** A key that was read, a secret, or why there is none. */
export type ReadKey = { readonly key: string } | { readonly problem: string };

/** Keys that were read, by their settings. `unread`: none was, because nothing uses them. */
export type ReadKeys = Readonly<Record<string, ReadKey>> | "unread";

/** Longest time of a command. */
const COMMAND_MS = 10_000;
/** Larger than any key with the text around it. */
const MAX_BYTES = 4_096;
/** Characters of a failed command's standard error that a problem repeats. */
const MAX_STDERR = 300;

const READ_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "it may not be read by this user",
  ENOENT: "there is no such file",
};

const START_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "this user may not run it",
  ENOENT: "there is no such program; write its name as in PATH, or its absolute path",
};

/** Reads a key of its file or by its command. Never rejects, and ends within `limitMs`. */
export async function readKeyOf(
  { file, command }: KeySource,
  env: Environment,
  limitMs = COMMAND_MS,
): Promise<ReadKey> {
  const read = file === undefined ? await readByCommand(command ?? [], env, limitMs) : await readOfFile(file);
  if ("problem" in read) return read;
  const key = read.key.trim();
  if (encryptionKey.safeParse(key).success) return { key };
  const what = file === undefined ? "what it printed" : "its content";
  return { problem: `${what} is no key: that is 32 bytes in base64 or hexadecimal, and nothing else` };
}

async function readOfFile(file: string): Promise<ReadKey> {
  try {
    const found = await stat(file);
    // A pipe could keep the start waiting for ever.
    if (!found.isFile()) return { problem: "it is not a file" };
    if (found.size > MAX_BYTES) return { problem: `it is larger than ${MAX_BYTES} bytes; this is not a key` };
    return { key: await readFile(file, "utf8") };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return { problem: READ_PROBLEMS[code] ?? `reading failed (${code})` };
  }
}

/** Runs the program without a shell. Its standard output is never part of the problem. */
function readByCommand(
  [program = "", ...args]: readonly string[],
  env: Environment,
  limitMs: number,
): Promise<ReadKey> {
  return new Promise((resolve) => {
    const options = {
      env,
      timeout: limitMs,
      killSignal: "SIGKILL",
      maxBuffer: MAX_BYTES,
      encoding: "utf8",
    } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve({ key: stdout });
      resolve({ problem: describeFailure(error, { stderr, limitMs }) });
    });
    // Standard input is empty: a program that prompts gets no answer, and ends.
    child.stdin?.on("error", () => undefined).end();
  });
}

function describeFailure(
  { code, killed, signal }: ExecFileException,
  { stderr, limitMs }: { readonly stderr: string; readonly limitMs: number },
): string {
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER")
    return `it printed more than ${MAX_BYTES} bytes; print only the key`;
  const output = stderr.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  const words = output === "" ? "" : `: ${output.length > MAX_STDERR ? `${output.slice(0, MAX_STDERR)}…` : output}`;
  if (killed) return `it did not end within ${limitMs / 1000} s${words}`;
  if (typeof code === "string") return START_PROBLEMS[code] ?? `it cannot be started (${code})`;
  return `it ended with ${signal == null ? `status ${code}` : signal}${words}`;
}

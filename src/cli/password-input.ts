import type { CliContext } from "./command.ts";

/** More than any password, and all that is read. */
const MAX_BYTES = 4096;

/**
 * The password on standard input: all of it but the end of its line. Never an argument, which everybody on the machine
 * could read. Throws when there is more than one line, or nothing.
 */
export async function readPassword({ readInput = readStandardInput }: CliContext): Promise<string> {
  const password = (await readInput()).replace(/\r?\n$/, "");
  if (password === "") throw new Error("--password-stdin: standard input is empty");
  if (password.includes("\n")) throw new Error("--password-stdin: standard input has more than one line");
  return password;
}

async function readStandardInput(): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size > MAX_BYTES) throw new Error("--password-stdin: standard input is too long for a password");
  }
  return Buffer.concat(pieces).toString("utf8");
}

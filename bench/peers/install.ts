import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** How long one command of an installation may take. */
const LIMIT_MS = 240_000;
/** Of what a failed command says, so much of the end. */
const LAST_CHARACTERS = 300;

/** Runs a command of an installation. Throws an Error with the end of what it said. */
export async function runInstaller(program: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await run(program, args, { timeout: LIMIT_MS, maxBuffer: 1 << 26 });
    return stdout;
  } catch (error) {
    const { stderr = "", message } = error as Error & { readonly stderr?: string };
    throw new Error(`${program} ${args[0]} failed: ${(stderr.trim() || message).slice(-LAST_CHARACTERS)}`, {
      cause: error,
    });
  }
}

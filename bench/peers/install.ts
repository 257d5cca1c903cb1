import { execFile } from "node:child_process";
import { endWithThis } from "../children.ts";

/** Time limit of one installation command. */
const LIMIT_MS = 600_000;
/** Characters kept of the end of a failed command's output. */
const LAST_CHARACTERS = 300;

/** Runs a command of an installation and returns its output. Throws an Error with the end of its error output. */
export function runInstaller(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: LIMIT_MS, maxBuffer: 1 << 26 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const output = (stderr.trim() || error.message).slice(-LAST_CHARACTERS);
      reject(new Error(`${program} ${args[0]} failed: ${output}`, { cause: error }));
    });
    endWithThis(child);
  });
}

import { execFile } from "node:child_process";
import { endWithThis } from "../children.ts";

/** How long one command of an installation may take: there is much to fetch. */
const LIMIT_MS = 240_000;
/** Of what a failed command says, so much of the end. */
const LAST_CHARACTERS = 300;

/** Runs a command of an installation. Throws an Error with the end of what it said. */
export function runInstaller(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { timeout: LIMIT_MS, maxBuffer: 1 << 26 };
    const child = execFile(program, args, options, (error, _stdout, stderr) => {
      if (error === null) return resolve();
      const said = (stderr.trim() || error.message).slice(-LAST_CHARACTERS);
      reject(new Error(`${program} ${args[0]} failed: ${said}`, { cause: error }));
    });
    endWithThis(child);
  });
}

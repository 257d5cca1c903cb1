import type { ClusterSettings } from "node:cluster";
import { extname } from "node:path";
import { getAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";

/** Asset of the single executable with its main program (scripts/executable.mjs). */
const EXECUTABLE_MAIN = "executable.cjs";

/** Starts a thread with the program `name` in the folder of the module `base` (an `import.meta.url`). */
export function startThread(name: string, base: string, options: WorkerOptions): Worker {
  // The main program runs the program that its argument names.
  if (isSea()) return new Worker(getAsset(EXECUTABLE_MAIN, "utf8"), { ...options, eval: true, argv: [name] });
  return new Worker(urlOf(name, base), options);
}

/** Settings of `node:cluster` for processes that run the program `name` in the folder of the module `base`. */
export function clusterProgram(name: string, base: string): ClusterSettings {
  // The executable has Node's flags in itself, and recognises that it is a process of a cluster.
  return isSea() ? { exec: process.execPath, execArgv: [] } : { exec: fileURLToPath(urlOf(name, base)) };
}

/** The command with which a person runs the program: the single executable, which may have been renamed, or npm in a folder. */
export function commandName(): string {
  return isSea() ? "parley" : "npx parley";
}

/** URL of a program beside `base`, with the same file extension: `.js` when built, `.ts` in the sources. */
function urlOf(name: string, base: string): URL {
  return new URL(`./${name}${extname(base)}`, base);
}

// Path, flags and environment of the program that `npm start` and `npx parley` run. See docs/decisions/0014-built-program.md.
// Runs on any Node >= 18, without dependencies.
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";

/** The program's source, used when it is not built. */
export const sourceProgram = "src/main.ts";

/** V8's default number of threads for garbage collection and compilers. */
const USUAL_V8_THREADS = 4;

/** Flags of Node for the program. `processors` is the number that it may use (unknown before Node 18.14). */
export const programFlags = (processors = os.availableParallelism?.() ?? os.cpus().length) => [
  // V8's middle compiler compiles all warm functions at once, and its memory is not returned. Without it requests cost
  // the same.
  "--no-maglev",
  // Pretenuring would allocate parts of waiting requests in the old generation. Once dead they retain all objects that
  // they reference, until a full collection.
  "--no-allocation-site-pretenuring",
  // With one processor, four marking threads leave a fifth of it to the event loop.
  `--v8-pool-size=${Math.min(processors, USUAL_V8_THREADS)}`,
  // By default SIGUSR1 opens Node's inspector, through which any local user can run code and read credentials.
  "--disable-sigusr1",
];

/** Default environment variables of the program; the user's own take precedence. */
export const programEnvironment = {
  // Node's compile cache, kept between starts if the folder is writable.
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../dist/program/compiled", import.meta.url)),
  // One arena: otherwise the GNU C library keeps freed memory per thread.
  MALLOC_ARENA_MAX: "1",
  // Half of libuv's threads may look names up. With its default of 4, two names whose servers are silent would keep
  // all others, such as the database's, from being found.
  UV_THREADPOOL_SIZE: "16",
};

/** @type {import("./build.mjs").Build} */
export const program = {
  name: "Parley",
  folder: fileURLToPath(new URL("../dist/program", import.meta.url)),
  // Stands for the packages.
  sources: ["src", "web/paths.ts", "gen", "package-lock.json", "scripts/build-program.mjs"],
  script: "scripts/build-program.mjs",
};

/**
 * Path of the program to run: the built one, built now unless `isReady`; when the build fails, its sources, after a
 * message. Never a program built from other sources.
 */
export async function ensureProgram(node, { isReady = false } = {}) {
  if (isReady || (await ensureBuilt(program, node))) return join(program.folder, "main.cjs");
  console.error("Parley could not be built; it runs from its sources, which start more slowly and take more memory.");
  return fileURLToPath(new URL(`../${sourceProgram}`, import.meta.url));
}

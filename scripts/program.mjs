// The built program: what `npm start` and `npx parley` run, and with which flags. See docs/decisions/0014-built-program.md.
// Runs on any Node >= 18, without dependencies.
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";

/** What the program is without having been built. */
export const sourceProgram = "src/main.ts";

/** Threads that V8 has for its collector and its compilers on any machine, unless it is told otherwise. */
const USUAL_V8_THREADS = 4;

/** Flags of Node for the program. `processors` is how many it may use, which Node before 18.14 does not know. */
export const programFlags = (processors = os.availableParallelism?.() ?? os.cpus().length) => [
  // V8's middle compiler takes on all that gets warm at once: what it needs for that is never given back, and with the
  // other two a request is no dearer.
  "--no-maglev",
  // V8 would allocate in the old generation what it found to outlive the young one: parts of requests that wait for their
  // answers. Once dead they would keep all that hung on them, until the whole heap is collected.
  "--no-allocation-site-pretenuring",
  // Four threads that mark garbage on the only processor leave a fifth of it to the requests.
  `--v8-pool-size=${Math.min(processors, USUAL_V8_THREADS)}`,
  // Node would open its inspector on SIGUSR1, through which any local user runs code and reads every credential.
  "--disable-sigusr1",
];

/** What the program's environment has beside the user's own, which wins. */
export const programEnvironment = {
  // What Node has compiled is kept from one start to the next, where that may be written.
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../dist/program/compiled", import.meta.url)),
  // The GNU C library would keep what each of a dozen threads has freed, for that thread alone.
  MALLOC_ARENA_MAX: "1",
};

/** @type {import("./build.mjs").Build} */
export const program = {
  name: "Parley",
  folder: fileURLToPath(new URL("../dist/program", import.meta.url)),
  // The packages are those of the lock.
  sources: ["src", "web/paths.ts", "gen", "package-lock.json", "scripts/build-program.mjs"],
  script: "scripts/build-program.mjs",
};

/**
 * The path of what to run: the program, built unless `isReady` says that it is up to date, or when it cannot be built, which
 * is said, its sources. Never what was built of other sources.
 */
export async function ensureProgram(node, { isReady = false } = {}) {
  if (isReady || (await ensureBuilt(program, node))) return join(program.folder, "main.cjs");
  console.error("Parley could not be built; it runs from its sources, which start more slowly and take more memory.");
  return fileURLToPath(new URL(`../${sourceProgram}`, import.meta.url));
}

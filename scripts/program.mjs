// Path, flags and environment of the program that `npm start` and `npx parley` run. See docs/decisions/0014-built-program.md.
// Runs on any Node >= 18, without dependencies.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { nativeEnvironment, programFlags } from "./program-flags.mjs";

/** The program's source, used when it is not built. */
export const sourceProgram = "src/main.ts";

export { programFlags };

/** Default environment variables of the program; the user's own take precedence. */
export const programEnvironment = {
  // Node's compile cache, kept between starts if the folder is writable.
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../dist/program/compiled", import.meta.url)),
  ...nativeEnvironment,
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

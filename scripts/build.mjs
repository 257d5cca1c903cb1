// What is built of the sources into a folder of its own below dist/, and built again when they have changed. Runs on any
// Node >= 18, without dependencies.
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { withInstallationLock } from "./installation.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const toSlashes = (path) => path.split(sep).join("/");

/** Whether this is a release: what was built, without the sources (scripts/release.mjs). */
export const isRelease = !existsSync(join(root, "src"));

/**
 * @typedef {object} Build
 * @property {string} name what is built, in words
 * @property {string} folder where the built files are
 * @property {string[]} sources files and folders of this project that they depend on
 * @property {string} script the program that builds them
 */

/**
 * Builds with this Node unless that was done already with these sources, which takes some ten milliseconds to find out.
 * Resolves with whether there are files made of these very sources; when there are not, why has been printed. Throws when
 * a signal ended the build, and when a release is incomplete.
 */
export async function ensureBuilt(build, node) {
  if (isBuilt(build)) return true;
  if (isRelease) throw new Error(`${build.folder} is missing: unpack the release again`);
  let status = 1;
  try {
    status = await withInstallationLock(() => {
      if (isBuilt(build)) return 0;
      console.error(`Building ${build.name} …`);
      return runCommand(node, [join(root, build.script)], { cwd: root });
    });
  } catch (error) {
    // Such as a folder that nobody may write to.
    console.error(error.message);
  }
  if (status > 128) throw new Error(`building ${build.name} was interrupted`);
  return status === 0;
}

/**
 * Replaces what was built. `make` writes the files into the folder that it is given, which is moved to its place when it
 * is complete, and resolves with the files of packages that are now part of the built ones, by their paths.
 */
export async function replaceBuilt(build, make) {
  // Before they are read: what changes meanwhile is built again.
  const sources = hashSources(build);
  mkdirSync(dirname(build.folder), { recursive: true });
  const folder = mkdtempSync(`${build.folder}-`);
  try {
    const packages = findPackages(await make(folder));
    writeFileSync(recordIn(folder), `${JSON.stringify({ sources, packages })}\n`);
    // Temporary folders are for their owner alone, and who serves may be somebody else.
    chmodSync(folder, 0o755);
    rmSync(build.folder, { recursive: true, force: true, maxRetries: 3 });
    renameSync(folder, build.folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether what was built is there and made of these very sources, of which a release has none. */
export function isBuilt(build) {
  try {
    return isRelease ? existsSync(recordIn(build.folder)) : readRecord(build).sources === hashSources(build);
  } catch {
    // Nothing is built, or a source cannot be read; building says which one.
    return false;
  }
}

/**
 * The hash of the sources, and the folders in node_modules whose files are in what was built, such as `node_modules/pg`.
 *
 * @returns {{ sources: string, packages: string[] }}
 */
export function readRecord({ folder }) {
  return JSON.parse(readFileSync(recordIn(folder), "utf8"));
}

function recordIn(folder) {
  return join(folder, "built.json");
}

/** @param {readonly string[]} files */
function findPackages(files) {
  const inPackage = /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/;
  return [...new Set(files.flatMap((file) => inPackage.exec(toSlashes(file))?.[0] ?? []))].sort();
}

/** A hash of all sources, by name and content. */
function hashSources({ sources }) {
  const hash = createHash("sha256");
  for (const path of sources.flatMap((source) => listFiles(join(root, source)))) {
    hash
      .update(`${toSlashes(relative(root, path))}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

/** The file itself, or all files in a folder and below, in the same order everywhere. */
function listFiles(path) {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).sort();
  return names.flatMap((name) => listFiles(join(path, name)));
}

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
/** Says which sources the files beside it were made of, and which packages are in them. */
const record = "built.json";

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
 * Builds unless that was done already with these sources, which takes some ten milliseconds to find out.
 *
 * @param {Build} build
 * @param {string} node the program to build with
 * @returns {Promise<boolean>} whether there are files made of these very sources; when there are not, why has been said
 * @throws {Error} when a signal ended the build: somebody wants us to stop
 */
export async function ensureBuilt(build, node) {
  let status = 0;
  if (isRelease && !isBuilt(build)) throw new Error(`${build.folder} is missing: unpack the release again`);
  try {
    if (isBuilt(build)) return true;
    await withInstallationLock(async () => {
      if (isBuilt(build)) return;
      console.error(`Building ${build.name} …`);
      status = await runCommand(node, [join(root, build.script)], { cwd: root });
    });
  } catch (error) {
    // Such as a folder that nobody may write to.
    console.error(error.message);
    status = 1;
  }
  if (status > 128) throw new Error(`building ${build.name} was interrupted`);
  return status === 0;
}

/**
 * Replaces what was built. `make` writes the files into the folder that it is given, which is moved to its place when it
 * is complete: nobody finds half of it.
 *
 * @param {Build} build
 * @param {(folder: string) => Promise<readonly string[]>} make gives the files of packages that are now part of the
 *   built ones, by their paths
 */
export async function replaceBuilt(build, make) {
  // Before they are read: what changes meanwhile is built again.
  const sources = hashSources(build);
  mkdirSync(dirname(build.folder), { recursive: true });
  const folder = mkdtempSync(`${build.folder}-`);
  try {
    const packages = findPackages(await make(folder));
    writeFileSync(join(folder, record), `${JSON.stringify({ sources, packages })}\n`);
    // Temporary folders are for their owner alone, and who serves may be somebody else.
    chmodSync(folder, 0o755);
    rmSync(build.folder, { recursive: true, force: true, maxRetries: 3 });
    renameSync(folder, build.folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Whether what was built is there and made of these very sources, of which a release has none.
 *
 * @param {Build} build
 * @returns {boolean}
 */
export function isBuilt(build) {
  if (!existsSync(join(build.folder, record))) return false;
  return isRelease || readRecord(build).sources === hashSources(build);
}

/**
 * What is known about the built files.
 *
 * @param {Build} build
 * @returns {{ sources: string, packages: string[] }} a hash of the sources, and the folders in node_modules whose files
 *   are in what was built, such as `node_modules/pg`
 */
export function readRecord(build) {
  return JSON.parse(readFileSync(join(build.folder, record), "utf8"));
}

/**
 * The packages' folders, each once.
 *
 * @param {readonly string[]} files
 */
function findPackages(files) {
  const folders = files.map(
    (file) => /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file.replaceAll(sep, "/"))?.[0],
  );
  return [...new Set(folders.filter((folder) => folder !== undefined))].sort();
}

function toProjectPath(path) {
  return relative(root, path).split(sep).join("/");
}

/** A hash of all sources, by name and content. */
function hashSources({ sources }) {
  const hash = createHash("sha256");
  for (const path of sources.flatMap((source) => listFiles(join(root, source)))) {
    hash
      .update(`${toProjectPath(path)}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

/** The file itself, or all files in a folder and below, in the same order everywhere. */
function listFiles(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => listFiles(join(path, name)));
}

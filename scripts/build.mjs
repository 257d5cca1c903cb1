// Builds from the sources into folders below dist/, repeated when the sources have changed. Runs on any Node >= 18,
// without dependencies.
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

/** Whether this is a release: built files without sources (scripts/release.mjs). */
export const isRelease = !existsSync(join(root, "src"));

/**
 * @typedef {object} Build
 * @property {string} name name for messages
 * @property {string} folder folder of the built files
 * @property {string[]} sources files and folders of this project that they depend on
 * @property {string} script program that builds them
 */

/**
 * Builds with this Node unless the built files are up to date (the check takes some 10 ms). Resolves with whether the
 * built files match these sources; otherwise the reason has been printed. Throws when a signal ended the build, and when
 * a release is incomplete.
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
    // For example a read-only folder.
    console.error(error.message);
  }
  if (status > 128) throw new Error(`building ${build.name} was interrupted`);
  return status === 0;
}

/**
 * Replaces the built files. `make` writes them into the given temporary folder, which is moved to its place when
 * complete, and resolves with the paths of the packages' files that were bundled.
 */
export async function replaceBuilt(build, make) {
  // Hashed before the build, so that changes during the build cause another one.
  const sources = hashSources(build);
  mkdirSync(dirname(build.folder), { recursive: true });
  const folder = mkdtempSync(`${build.folder}-`);
  try {
    const packages = findPackages(await make(folder));
    writeFileSync(recordIn(folder), `${JSON.stringify({ sources, packages })}\n`);
    // Temporary folders are readable for their owner only, but the server may run as another user.
    chmodSync(folder, 0o755);
    rmSync(build.folder, { recursive: true, force: true, maxRetries: 3 });
    renameSync(folder, build.folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether the built files exist and match the sources; a release has no sources. */
export function isBuilt(build) {
  try {
    return isRelease ? existsSync(recordIn(build.folder)) : readRecord(build).sources === hashSources(build);
  } catch {
    // Nothing is built, or a source cannot be read; the build reports which.
    return false;
  }
}

/**
 * The hash of the sources, and the folders in node_modules whose files were bundled, such as `node_modules/pg`.
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

/** The file itself, or all files in a folder and below, in a platform-independent order. */
function listFiles(path) {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).sort();
  return names.flatMap((name) => listFiles(join(path, name)));
}

// Updates node_modules to match package-lock.json. Runs on any Node >= 18, without dependencies.
import { existsSync, lstatSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { findNode, packagedNodePath } from "./node-version.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const packagesFolder = join(root, "node_modules");
const recordFile = join(packagesFolder, ".package-lock.json");
/** Lock file with the ID of the process that changes this folder. */
const lockFile = join(root, ".bootstrap.lock");
/** Age from which a lock counts as left by an interrupted process. */
const staleMs = 10 * 60_000;

const options = [
  "--ignore-scripts", // no dependency needs them
  "--include=dev", // overrides NODE_ENV and npm's configuration: this is a checkout
  "--include=optional",
  "--engine-strict=false", // an old Node is replaced below
  "--no-audit",
  "--no-fund",
  "--loglevel=error",
];

/**
 * Installs the packages of package-lock.json unless they are installed. Throws when npm fails, after npm's message, and when
 * node_modules is a link.
 */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await withInstallationLock(async () => {
    if (isInstalled()) return;
    requireOwnPackages();
    console.error("Installing the locked dependencies …");
    // Uses the parent npm, if there is one.
    const npm = process.env.npm_execpath ?? "";
    const [command, ...first] =
      basename(npm) === "npm-cli.js" ? [process.env.npm_node_execpath ?? process.execPath, npm] : ["npm"];
    const status = await runCommand(command, [...first, "ci", ...options], { cwd: root });
    if (status !== 0)
      throw new Error(
        `npm could not install the dependencies (npm ci ended with status ${status}). The first start needs npm's ` +
          "registry once; behind a proxy set HTTPS_PROXY. If another npm is installing in this folder, wait for it and " +
          "repeat. Without a network use a release, which has everything inside: docs/operations/releases.md",
      );
    // npm scripts look for programs here first. The packaged Node must not shadow the user's own.
    for (const name of ["node", "node.cmd", "node.ps1"]) rmSync(join(packagesFolder, ".bin", name), { force: true });
  });
}

/** `npm ci` removes what is in node_modules first: through a link, the packages of another folder. */
function requireOwnPackages() {
  if (lstatSync(packagesFolder, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new Error(
    `${packagesFolder} is a link, and the packages there are not those of package-lock.json. Installing would remove them: ` +
      "remove the link, or install in the folder that it leads to.",
  );
}

/** Runs a change of this folder under a lock file; waits for other processes. Resolves with its result. */
export async function withInstallationLock(action) {
  for (let isWaiting = false; !takeLock(); isWaiting = true) {
    if (!isWaiting) console.error("Waiting for another installation in this folder …");
    await wait(250);
  }
  try {
    return await action();
  } finally {
    rmSync(lockFile, { force: true });
  }
}

/**
 * Compares npm's record in node_modules, so that a manual installation counts too. Optional packages of other platforms
 * may be missing; but the record must be of this platform, and with an old Node the packaged one must be installed.
 */
function isInstalled() {
  if (!existsSync(recordFile) || (findNode() === undefined && packagedNodePath !== undefined)) return false;
  const [locked, installed] = [join(root, "package-lock.json"), recordFile].map(
    (path) => JSON.parse(readFileSync(path, "utf8")).packages,
  );
  // A name or a list of names.
  const isForThisPlatform = ({ os = process.platform }) => os.includes(process.platform);
  const isAsLocked = ([path, { version, optional }]) =>
    path === "" || (path in installed ? installed[path].version === version : optional === true);
  return Object.values(installed).every(isForThisPlatform) && Object.entries(locked).every(isAsLocked);
}

/** Whether this process now holds the lock. Removes one whose process is gone, or has held it for too long. */
function takeLock() {
  try {
    writeFileSync(lockFile, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  if (isLockStale()) rmSync(lockFile, { recursive: true, force: true });
  return false;
}

function isLockStale() {
  try {
    if (Date.now() - statSync(lockFile).mtimeMs > staleMs) return true;
    process.kill(Number(readFileSync(lockFile, "utf8")), 0);
    return false;
  } catch (error) {
    // ESRCH: no such process. Other errors, such as a lock just released or still empty, are retried.
    return error.code === "ESRCH";
  }
}

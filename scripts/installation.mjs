// Bringing node_modules up to date with package-lock.json. Runs on any Node >= 18, without dependencies.
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { findNode, packagedNodePath } from "./node-version.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const recordFile = join(root, "node_modules/.package-lock.json");
/** Holds the ID of the process that changes this folder. */
const lockFile = join(root, ".bootstrap.lock");
/** A change that takes longer than this was interrupted without a chance to clean up. */
const staleMs = 10 * 60_000;

const options = [
  "--ignore-scripts", // no dependency needs its own
  "--include=dev", // also where NODE_ENV or npm's configuration says otherwise: this is a checkout
  "--include=optional",
  "--engine-strict=false", // an old Node is replaced below
  "--no-audit",
  "--no-fund",
  "--loglevel=error",
];

/** Installs what package-lock.json says unless that is there. Throws when npm fails; npm has then said why. */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await withInstallationLock(async () => {
    if (isInstalled()) return;
    console.error("Installing the locked dependencies …");
    // With the npm that started us, where it was npm.
    const npm = process.env.npm_execpath ?? "";
    const [command, ...first] =
      basename(npm) === "npm-cli.js" ? [process.env.npm_node_execpath ?? process.execPath, npm] : ["npm"];
    const status = await runCommand(command, [...first, "ci", ...options], { cwd: root });
    if (status !== 0)
      throw new Error(
        `npm could not install the dependencies (npm ci ended with status ${status}). The first start needs npm's ` +
          "registry once; behind a proxy set HTTPS_PROXY. Without a network use a release, which has everything inside: " +
          "docs/operations/releases.md",
      );
    // npm scripts look for programs here first. The packaged Node must not stand in for the user's own.
    for (const name of ["node", "node.cmd", "node.ps1"]) rmSync(join(root, "node_modules/.bin", name), { force: true });
  });
}

/** Does something to this folder while no other process does; waits for one that does. Resolves with its result. */
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
 * npm leaves a record of what it installed in node_modules, so an installation by hand counts too. Optional packages
 * may be missing, they are for other platforms; but the record must not come from another platform, and an old Node
 * needs its replacement.
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
    // ESRCH: no such process. Anything else, such as a lock just released or not yet signed, is looked at again.
    return error.code === "ESRCH";
  }
}

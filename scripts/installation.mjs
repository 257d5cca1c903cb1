// Bringing node_modules up to date with package-lock.json. Runs on any Node >= 18, without dependencies.
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { findNode, packagedNodePath } from "./node-version.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const lockFolder = join(root, ".bootstrap.lock");
const ownerPath = join(lockFolder, "pid");
/** An installation that takes longer than this was interrupted without a chance to clean up. */
const staleLockMs = 10 * 60_000;
const pollMs = 250;

/**
 * Installs what package-lock.json says unless it is there already, which takes a few milliseconds to find out. When
 * another process is installing, waits for it.
 *
 * @throws {Error} when npm fails; npm has then said why
 */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await withInstallationLock(async () => {
    if (!isInstalled()) await install();
  });
}

/**
 * Does something to this folder while no other process does. Waits for one that does.
 *
 * @param {() => Promise<void>} action
 */
export async function withInstallationLock(action) {
  await takeLock();
  try {
    await action();
  } finally {
    rmSync(lockFolder, { recursive: true, force: true });
  }
}

/**
 * npm leaves a record of what it installed in node_modules, so an installation by hand counts too. Optional packages
 * may be missing, they are for other platforms; but the record must not come from another platform, and an old Node
 * needs its replacement.
 */
function isInstalled() {
  const locked = readPackages(join(root, "package-lock.json"));
  const installed = readPackages(join(root, "node_modules/.package-lock.json"));
  if (installed === undefined) return false;
  if (findNode() === undefined && packagedNodePath !== undefined) return false;
  return (
    Object.values(installed).every(({ os }) => isForThisPlatform(os)) &&
    Object.entries(locked).every(([path, { version, optional }]) => {
      if (path === "") return true;
      return installed[path] === undefined ? optional === true : installed[path].version === version;
    })
  );
}

/** `os` as package.json files have it: a name or several, `!` in front of those that are left out, or nothing. */
function isForThisPlatform(os = []) {
  const names = [os].flat();
  return names.length === 0 || names.some((name) => name === process.platform || name.startsWith("!"));
}

function readPackages(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).packages : undefined;
}

async function install() {
  console.error("Installing the locked dependencies …");
  const options = [
    "--ignore-scripts", // no dependency needs its own
    "--include=dev", // also where NODE_ENV or npm's configuration says otherwise: this is a checkout
    "--include=optional",
    "--engine-strict=false", // an old Node is replaced below
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  const status = await runNpm(["ci", ...options]);
  if (status !== 0) throw new Error(`npm ci ended with status ${status}`);
  // npm scripts look for programs here first. The packaged Node must not stand in for the user's own.
  for (const name of ["node", "node.cmd", "node.ps1"]) rmSync(join(root, "node_modules/.bin", name), { force: true });
}

/** With the npm that started us, where it was npm. */
function runNpm(args) {
  const npm = process.env.npm_execpath ?? "";
  if (basename(npm) !== "npm-cli.js") return runCommand("npm", args, { cwd: root });
  return runCommand(process.env.npm_node_execpath ?? process.execPath, [npm, ...args], { cwd: root });
}

async function takeLock() {
  for (let attempt = 0; ; attempt += 1) {
    try {
      mkdirSync(lockFolder);
      writeFileSync(ownerPath, String(process.pid));
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (isLockStale()) rmSync(lockFolder, { recursive: true, force: true });
    else if (attempt === 0) console.error("Waiting for another installation in this folder …");
    await wait(pollMs);
  }
}

/** Whether the process that holds the lock is gone, or has held it for too long. */
function isLockStale() {
  try {
    if (Date.now() - statSync(lockFolder).mtimeMs > staleLockMs) return true;
    process.kill(Number(readFileSync(ownerPath, "utf8")), 0);
    return false;
  } catch (error) {
    // ESRCH: no such process. Anything else, such as a lock just released or not yet signed, is looked at again.
    return error.code === "ESRCH";
  }
}

// Makes package-lock.json usable on every platform: `node scripts/complete-lock.mjs` after adding or updating a
// dependency, `node scripts/complete-lock.mjs --check` to only report problems (exit code 1; without the
// registry). Runs on any Node >= 18 without dependencies, because `npm ci` refuses a lock file with missing packages.
//
// npm locks only packages of other platforms that it finds when it writes the lock, and installs an entry without an
// integrity hash unchecked. So both are read from the registry, with `npm view`. A missing package is an error: the lock
// would work on some platforms only, or run unverified code.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const lockPath =
  process.argv.slice(2).find((arg) => !arg.startsWith("--")) ??
  fileURLToPath(new URL("../package-lock.json", import.meta.url));
const lock = JSON.parse(readFileSync(lockPath, "utf8"));

/** Whether `name`, required by the package at `path`, is locked where Node would look for it. */
function isLocked(path, name) {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (lock.packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

/** Optional packages that are required and not locked: path in the lock, name, version and whether development's. */
function findMissing() {
  const missing = new Map();
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      if (isLocked(path, name)) continue;
      missing.set(`node_modules/${name}`, { name, version: range.replace(/^[\^~=]/, ""), dev: entry.dev });
    }
  }
  return [...missing].map(([path, wanted]) => ({ path, ...wanted }));
}

/** Entries without an integrity hash. Bundled packages are covered by the hash of their parent package. */
function findUnverified() {
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path !== "" && entry.link !== true && entry.inBundle !== true)
    .filter(([, { integrity = "" }]) => !integrity.startsWith("sha512-"))
    .map(([path, { name, version }]) => ({ path, name: name ?? path.replace(/^.*node_modules\//, ""), version }));
}

/** Paths of entries with a `resolved` address, which must not be locked: installations use different registries. */
function findAddresses() {
  return Object.keys(lock.packages).filter((path) => /^https?:/.test(lock.packages[path].resolved ?? ""));
}

/**
 * The registry's data of one version of a package.
 *
 * @throws {Error} with the remedy, when it has no such version or no SHA-512 hash of it
 */
function askRegistry({ name, version }) {
  const fields = ["os", "cpu", "libc", "engines", "license", "dist.integrity"];
  const args = ["view", `${name}@${version}`, "--json", "--loglevel=silent", ...fields];
  const { status, stdout } = spawnSync("npm", args, { encoding: "utf8", shell: process.platform === "win32" });
  const answer = status === 0 && stdout !== "" ? JSON.parse(stdout) : {};
  // npm prints a plain value instead of an object where there is only one.
  const { "dist.integrity": integrity, ...facts } = typeof answer === "string" ? { "dist.integrity": answer } : answer;
  if (!integrity?.startsWith("sha512-"))
    throw new Error(
      `the registry has no SHA-512 hash of ${name}@${version}: lock a version of the package that requires it ` +
        `whose packages for other platforms are published`,
    );
  return { ...facts, integrity };
}

const missing = findMissing();
const unverified = findUnverified();
const addresses = findAddresses();

if (process.argv.includes("--check")) {
  for (const { path } of missing) console.error(`package-lock.json: no entry for ${path}`);
  for (const { path } of unverified) console.error(`package-lock.json: ${path} has no integrity hash`);
  for (const path of addresses) console.error(`package-lock.json: ${path} names the address it came from`);
  if (missing.length + unverified.length + addresses.length > 0) {
    console.error("package-lock.json: run `npm run lock:complete`");
    process.exitCode = 1;
  }
} else {
  try {
    complete();
  } catch (error) {
    console.error(`package-lock.json: ${error.message}`);
    process.exitCode = 1;
  }
}

/** Writes the lock file only when all missing data was found. */
function complete() {
  for (const path of addresses) delete lock.packages[path].resolved;
  for (const wanted of missing) {
    const { integrity, os, cpu, libc, license, engines } = askRegistry(wanted);
    const { path, version, dev } = wanted;
    lock.packages[path] = { version, integrity, cpu, dev, libc, license, optional: true, os, engines };
  }
  for (const wanted of unverified) {
    const { version, ...rest } = lock.packages[wanted.path];
    lock.packages[wanted.path] = { version, integrity: askRegistry(wanted).integrity, ...rest };
  }
  const entries = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en"));
  lock.packages = Object.fromEntries(entries);
  writeFileSync(lockPath, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(
    `package-lock.json: ${missing.length} entries and ${unverified.length} hashes added, ` +
      `${addresses.length} addresses removed`,
  );
}

// Makes package-lock.json usable everywhere: `node scripts/complete-lock.mjs` after adding or updating a dependency,
// `node scripts/complete-lock.mjs --check` to only say what is wrong with it (exit status 1). Runs on any Node >= 18
// without dependencies, because `npm ci` refuses a lock file with holes.
//
// npm locks only those packages of other platforms that it can find; a registry that does not carry them leaves holes,
// and then the lock works on the machine that wrote it and nowhere else. What a hole needs is known without a registry:
// its exact version stands beside its name, its platform in its name. (Its integrity hash is not known; npm adds it
// when the lock is next written where the package can be found.)
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const lockPath =
  process.argv.slice(2).find((arg) => !arg.startsWith("--")) ??
  fileURLToPath(new URL("../package-lock.json", import.meta.url));
const lock = JSON.parse(readFileSync(lockPath, "utf8"));

const systems = new Set("aix android darwin freebsd linux netbsd openbsd openharmony sunos win32".split(" "));
const processors = new Set("arm arm64 ia32 loong64 mips64el ppc64 riscv64 s390x wasm32 x64".split(" "));

/** Which operating system, processor and C library a package such as `@oxfmt/binding-linux-x64-musl` is for. */
function readPlatform(name) {
  const words = name.split(/[-/]/).map((word) => (word === "armv7" ? "arm" : word));
  const os = words.find((word) => systems.has(word));
  const cpu = words.find((word) => processors.has(word));
  // WebAssembly runs on every system.
  if (cpu === "wasm32") return { cpu: [cpu] };
  if (os === undefined || cpu === undefined) throw new Error(`${name} is not in the lock and names no platform`);
  const cLibrary = words.map((word) => /^(musl|gnu)/.exec(word)?.[1]).find((match) => match !== undefined);
  return { os: [os], cpu: [cpu], libc: cLibrary && [cLibrary === "gnu" ? "glibc" : "musl"] };
}

/** Whether `name`, required by the package at `path`, is locked where Node would look for it. */
function isLocked(path, name) {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (lock.packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

/** The entries that are missing, by their path in the lock. */
function findHoles() {
  const holes = {};
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      if (isLocked(path, name)) continue;
      const { os, cpu, libc } = readPlatform(name);
      const version = range.replace(/^[\^~=]/, "");
      holes[`node_modules/${name}`] = { version, cpu, dev: entry.dev, libc, optional: true, os };
    }
  }
  return holes;
}

/** Paths of the entries that name the address they came from, which is the business of whoever installs. */
function findAddresses() {
  return Object.keys(lock.packages).filter((path) => /^https?:/.test(lock.packages[path].resolved ?? ""));
}

const holes = findHoles();
const addresses = findAddresses();

if (process.argv.includes("--check")) {
  for (const path of Object.keys(holes)) console.error(`package-lock.json: no entry for ${path}`);
  for (const path of addresses) console.error(`package-lock.json: ${path} names the address it came from`);
  if (Object.keys(holes).length + addresses.length > 0) {
    console.error("package-lock.json: run `npm run lock:complete`");
    process.exitCode = 1;
  }
} else {
  for (const path of addresses) delete lock.packages[path].resolved;
  const entries = Object.entries({ ...lock.packages, ...holes });
  lock.packages = Object.fromEntries(entries.sort(([a], [b]) => a.localeCompare(b, "en")));
  writeFileSync(lockPath, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`package-lock.json: ${Object.keys(holes).length} entries added, ${addresses.length} addresses removed`);
}

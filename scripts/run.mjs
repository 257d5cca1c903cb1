// node scripts/run.mjs <program> [arguments]: installs missing packages, then runs the program on a sufficiently new
// Node: a .ts or .mjs file of this project, or a tool from node_modules. All npm scripts use it, so that a fresh clone and
// an old Node are sufficient; it also builds Parley. Runs on any Node >= 18, without
// dependencies.
//
// Hooks such as `prestart` would be skipped under --ignore-scripts, and `node install.mjs && node src/main.ts` would
// run both on the old Node.
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt, isBuilt, isRelease } from "./build.mjs";
import { runCommand } from "./child-process.mjs";
import { ensureInstalled } from "./installation.mjs";
import { chooseNode, describeNeed, findNode } from "./node-version.mjs";
import { ensureProgram, program as parley, programEnvironment, programFlags, sourceProgram } from "./program.mjs";
import { webApp } from "./web-app.mjs";

// Without a listener SIGUSR1 opens Node's inspector to every local user. Node 20 has no flag against that.
process.on("SIGUSR1", () => undefined);

const root = fileURLToPath(new URL("..", import.meta.url));
const [program, ...args] = process.argv.slice(2);

try {
  if (program === undefined) throw new Error("usage: node scripts/run.mjs <program> [arguments]");
  process.exitCode = await (program === sourceProgram ? runParley() : runTool());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function runTool() {
  await ensureInstalled();
  const node = preferInPath(chooseNode());
  const isFile = /\.(ts|mjs)$/.test(program);
  return isFile ? runCommand(node.path, [resolve(root, program), ...args]) : runCommand(program, args);
}

/** Runs Parley. Installs nothing when it is built and a suitable Node exists, as on a server. */
async function runParley() {
  // `serve` is the default command. Other commands need no pages.
  const isServe = /^(serve$|--(config|role|core)\b)/.test(args[0] ?? "serve");
  const isReady = findNode() !== undefined && isBuilt(parley) && (!isServe || isBuilt(webApp));
  if (!isReady && !isRelease) await ensureInstalled();
  const node = preferInPath(chooseNode());
  if (isServe && !isReady && !(await ensureBuilt(webApp, node.path)))
    console.error("The dashboard could not be built; everything else works without it.");
  const main = await ensureProgram(node.path, { isReady });
  if (node.isPackaged && isServe)
    console.error(
      `${describeNeed()} It runs on ${node.path}, a package that is not published by the Node project. On a server, ` +
        "install Node and set PARLEY_NODE=system: docs/operations/security.md says why.",
    );
  for (const [name, value] of Object.entries(programEnvironment)) process.env[name] ??= value;
  return runCommand(node.path, [...programFlags(), main, ...args]);
}

/** Puts this Node first in PATH, because tools start Node by its name. */
function preferInPath(node) {
  const folders = [...(node.isPackaged ? [dirname(node.path)] : []), join(root, "node_modules/.bin")];
  process.env.PATH = [...folders, process.env.PATH].join(delimiter);
  return node;
}

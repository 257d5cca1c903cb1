// node scripts/run.mjs <program> [arguments]: installs what is missing, then runs the program on a Node that is new
// enough: a .ts or .mjs file of this project, or a tool from node_modules. All npm scripts go through here, so that a
// fresh clone and an old Node are enough; what of Parley is built is built here too. Runs on any Node >= 18, without
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

// Without a listener Node would open its inspector, to every local user. Node 20 has no flag against that.
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

/** Runs Parley itself. Installs nothing when what it needs is built and there is a Node for it: on a server above all. */
async function runParley() {
  // Also what it does without a command. The other commands show no pages.
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

/** Tools start Node by its name: it has to be this one for them too. */
function preferInPath(node) {
  const folders = [...(node.isPackaged ? [dirname(node.path)] : []), join(root, "node_modules/.bin")];
  process.env.PATH = [...folders, process.env.PATH].join(delimiter);
  return node;
}

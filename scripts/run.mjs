// node scripts/run.mjs <program> [arguments]: installs what is missing, then runs the program on a Node that is new
// enough: a .ts or .mjs file of this project, or a tool from node_modules. All npm scripts go through here, so that a
// fresh clone and an old Node are enough; what of Parley is built is built here too. Runs on any Node >= 18, without
// dependencies.
//
// Hooks such as `prestart` would be skipped under --ignore-scripts, and `node install.mjs && node src/main.ts` would
// run both on the old Node.
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isBuilt, isRelease } from "./build.mjs";
import { runCommand } from "./child-process.mjs";
import { ensureInstalled } from "./installation.mjs";
import { chooseNode, describeNeed, findNode } from "./node-version.mjs";
import {
  builtProgram,
  ensureProgram,
  program as parley,
  programEnvironment,
  programFlags,
  sourceProgram,
} from "./program.mjs";
import { ensureWebApp, webApp } from "./web-app.mjs";

// Without a listener Node would open its inspector, to every local user. Node 20 has no flag against that.
process.on("SIGUSR1", () => undefined);

const root = fileURLToPath(new URL("..", import.meta.url));
const [program, ...args] = process.argv.slice(2);

try {
  if (program === undefined) throw new Error("usage: node scripts/run.mjs <program> [arguments]");
  if (program === sourceProgram) process.exitCode = await runParley();
  else {
    await ensureInstalled();
    const node = chooseNode();
    preferInPath(node);
    process.exitCode = /\.(ts|mjs)$/.test(program)
      ? await runCommand(node.path, [resolve(root, program), ...args])
      : await runCommand(program, args);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** Runs Parley itself. Installs nothing when what it needs is built, and is there for its Node: on a server above all. */
async function runParley() {
  const isBuiltWhole = isReady(isServe(args) ? [parley, webApp] : [parley]);
  if (!isBuiltWhole && !isRelease) await ensureInstalled();
  const node = chooseNode();
  preferInPath(node);
  if (!isBuiltWhole && isServe(args)) await ensureWebApp(node.path);
  const main = isBuiltWhole ? builtProgram : await ensureProgram(node.path);
  if (node.isPackaged && isServe(args)) console.error(describePackagedNode(node));
  for (const [name, value] of Object.entries(programEnvironment)) process.env[name] ??= value;
  return runCommand(node.path, [...programFlags(), main, ...args]);
}

/** Whether nothing has to be installed for running what is built. */
function isReady(parts) {
  if (findNode() === undefined) return false;
  try {
    return parts.every(isBuilt);
  } catch {
    // A source cannot be read. Building says so.
    return false;
  }
}

/** Tools start Node by its name: it has to be this one for them too. */
function preferInPath({ path, isPackaged }) {
  const folders = [...(isPackaged ? [dirname(path)] : []), join(root, "node_modules/.bin")];
  process.env.PATH = [...folders, process.env.PATH].join(delimiter);
}

function describePackagedNode({ path }) {
  return (
    `${describeNeed()} It runs on ${path}, a package that is not published by the Node project. On a server, install ` +
    "Node and set PARLEY_NODE=system: docs/operations/security.md says why."
  );
}

/** Whether Parley is asked to serve, which is also what it does unasked: its other commands show no pages. */
function isServe([command = "serve"]) {
  return command === "serve" || /^--(config|role|core)\b/.test(command);
}

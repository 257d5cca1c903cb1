// node scripts/run.mjs <program> [arguments]: installs what is missing, then runs the program on a Node that is new
// enough: a .ts or .mjs file of this project, or a tool from node_modules. All npm scripts go through here, so that a
// fresh clone and an old Node are enough; what of Parley is built is built here too. Runs on any Node >= 18, without
// dependencies.
//
// Hooks such as `prestart` would be skipped under --ignore-scripts, and `node install.mjs && node src/main.ts` would
// run both on the old Node.
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { ensureInstalled } from "./installation.mjs";
import { chooseNode } from "./node-version.mjs";
import { ensureProgram, programEnvironment, programFlags, sourceProgram } from "./program.mjs";
import { ensureWebApp } from "./web-app.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const [program, ...args] = process.argv.slice(2);

try {
  if (program === undefined) throw new Error("usage: node scripts/run.mjs <program> [arguments]");
  await ensureInstalled();
  const node = chooseNode();
  // Tools start Node by its name: it has to be this one for them too.
  const folders = [...(node === process.execPath ? [] : [dirname(node)]), join(root, "node_modules/.bin")];
  process.env.PATH = [...folders, process.env.PATH].join(delimiter);
  if (program === sourceProgram) {
    if (isServe(args)) await ensureWebApp(node);
    for (const [name, value] of Object.entries(programEnvironment)) process.env[name] ??= value;
    process.exitCode = await runCommand(node, [...programFlags(), await ensureProgram(node), ...args]);
  } else {
    process.exitCode = /\.(ts|mjs)$/.test(program)
      ? await runCommand(node, [resolve(root, program), ...args])
      : await runCommand(program, args);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

/** Whether Parley is asked to serve, which is also what it does unasked: its other commands show no pages. */
function isServe([command = "serve"]) {
  return command === "serve" || /^--(config|role|core)\b/.test(command);
}

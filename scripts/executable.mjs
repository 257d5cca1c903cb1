// Main program of the single executable (scripts/build-executable.mjs): runs the built program out of the executable's
// assets, in the process and in the threads and processes that it starts. Nothing is unpacked, and no code is read from
// the disk.
import cluster from "node:cluster";
import { createRequire } from "node:module";
import { getAsset } from "node:sea";
import { compileFunction, constants } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { heapFlags, nativeEnvironment, programFlags } from "./program-flags.mjs";

/** Where modules seem to be: at the same depth as in an installation. Names them in stack traces. */
const FOLDER = "/parley/dist/program";

const PARAMETERS = ["exports", "require", "module", "__filename", "__dirname"];

const modules = new Map();
const requireBuiltIn = createRequire(`${FOLDER}/main.cjs`);

if (isMainThread && cluster.isPrimary) setEnvironment();
load(`${programName()}.cjs`);

/**
 * Starts this process again, under the same ID, unless it has the variables that Node and the C library read at their
 * start. The sizes of V8's pool and heap depend on the machine, so that they are no flags of the executable.
 */
function setEnvironment() {
  if (Object.keys(nativeEnvironment).every((name) => process.env[name] !== undefined)) return;
  const pool = programFlags().find((flag) => flag.startsWith("--v8-pool-size="));
  // The last of repeated flags counts.
  const options = [pool, ...heapFlags(), process.env.NODE_OPTIONS].filter(Boolean).join(" ");
  process.execve(process.execPath, [process.argv0, ...process.argv.slice(2)], {
    ...nativeEnvironment,
    ...process.env,
    NODE_OPTIONS: options,
  });
}

function programName() {
  // As started by src/installation/own-programs.ts.
  if (!isMainThread) return process.argv[2];
  return cluster.isWorker ? "worker-program" : "main";
}

/** The exports of a module of the program. */
function load(name) {
  const loaded = modules.get(name);
  if (loaded !== undefined) return loaded.exports;
  const filename = `${FOLDER}/${name}`;
  const module = { exports: {} };
  modules.set(name, module);
  const run = compileFunction(getAsset(`dist/program/${name}`, "utf8"), PARAMETERS, {
    filename,
    // Some packages import Node's own modules with import().
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  run.call(module.exports, module.exports, requireModule, module, filename, FOLDER);
  return module.exports;
}

/** `require` of the program's modules: of each other, and of Node's. */
function requireModule(id) {
  return id.startsWith("./") ? load(id.slice(2)) : requireBuiltIn(id);
}

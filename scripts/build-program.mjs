// Builds the program into dist/program: all modules and packages that it consists of in a few files, which Node reads in
// a fraction of the time. `npm start` and `npx parley` do it by themselves when the sources have changed.
//
// The files are as deep in this project as those of src/<folder>/, so that what the program finds by its own place
// (package.json, dist/console) is found from here too.
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { replaceBuilt } from "./build.mjs";
import { program, sourceProgram } from "./program.mjs";

await replaceBuilt(program, async (folder) => {
  await build({
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    input: {
      main: sourceProgram,
      // Threads are programs of their own, which the program finds beside it.
      "sqlite-worker": "src/store/sqlite-worker.ts",
    },
    platform: "node",
    // Nothing in one changes what our sources mean.
    tsconfig: false,
    // They read files beside their own.
    external: [/^@grpc\//, "grpc-health-check"],
    output: { dir: folder, format: "esm" },
    logLevel: "warn",
  });
});

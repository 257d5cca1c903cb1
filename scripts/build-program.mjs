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
  const { output } = await build({
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    input: {
      main: sourceProgram,
      // Threads are programs of their own, which the program finds beside it.
      "sqlite-worker": "src/store/sqlite/sqlite-worker.ts",
      // And so are the processes that it starts.
      "worker-program": "src/workers/worker-program.ts",
    },
    platform: "node",
    // Nothing in one changes what our sources mean.
    tsconfig: false,
    // For services of grpc-js that we do not have.
    external: ["@grpc/proto-loader"],
    plugins: [onlyAscii()],
    output: {
      dir: folder,
      // Importing node:http from an ECMAScript module reads all that it exports, which loads Node's own fetch.
      format: "cjs",
      entryFileNames: "[name].cjs",
      chunkFileNames: "[name]-[hash].cjs",
      comments: false,
    },
    logLevel: "warn",
  });
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
});

/** V8 keeps a source with a single other character in two bytes for each. They only stand in strings and patterns. */
function onlyAscii() {
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return {
    name: "only-ascii",
    // Last of all: what `renderChunk` gives is parsed once more, and written with the characters themselves.
    generateBundle(_, files) {
      for (const file of Object.values(files)) file.code = file.code.replaceAll(/[^\0-\x7f]/g, escape);
    },
  };
}

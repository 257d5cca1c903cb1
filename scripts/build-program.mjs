// Builds the program into dist/program: all modules and packages bundled into a few files, for a fast start. `npm start`
// and `npx parley` run it when the sources have changed.
//
// The files are at the same depth as those of src/<folder>/, so that paths relative to a module (package.json,
// dist/console) work in both.
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { replaceBuilt } from "./build.mjs";
import { program, sourceProgram } from "./program.mjs";

await replaceBuilt(program, async (folder) => {
  const { output } = await build({
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    input: {
      main: sourceProgram,
      // Threads are separate entries, loaded by their path.
      "sqlite-worker": "src/store/sqlite/sqlite-worker.ts",
      // Child processes are separate entries, too.
      "worker-program": "src/workers/worker-program.ts",
    },
    platform: "node",
    // No tsconfig is read: none has an option that changes the code.
    tsconfig: false,
    // Its ECMAScript modules load a second copy of grpc-js at run time, which does not know the credentials of the bundled one.
    resolve: {
      alias: {
        "@opentelemetry/otlp-grpc-exporter-base": fileURLToPath(
          new URL("../node_modules/@opentelemetry/otlp-grpc-exporter-base/dist/index.cjs", import.meta.url),
        ),
      },
    },
    // Needed only by services of grpc-js that Parley does not use.
    external: ["@grpc/proto-loader"],
    plugins: [onlyAscii()],
    output: {
      dir: folder,
      // An ECMAScript import of node:http reads all its exports, which loads Node's own fetch.
      format: "cjs",
      entryFileNames: "[name].cjs",
      chunkFileNames: "[name]-[hash].cjs",
      comments: false,
    },
    logLevel: "warn",
  });
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
});

/** Escapes non-ASCII characters: V8 stores a source with one of them in two bytes per character. */
function onlyAscii() {
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return {
    name: "only-ascii",
    // As the last step: the result of `renderChunk` is parsed and printed again, without escapes.
    generateBundle(_, files) {
      for (const file of Object.values(files)) file.code = file.code.replaceAll(/[^\0-\x7f]/g, escape);
    },
  };
}

// npm run build:web: builds the dashboard into dist/console, beside its files compressed ones, and in proto/ the contract
// as people download it. `npm start` does it by itself when the sources have changed.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "vite";
import { replaceBuilt } from "./build.mjs";
import { buildContract } from "./reference/contract.ts";
import { makeReference } from "./reference/reference.ts";
import { webApp } from "./web-app.mjs";

await replaceBuilt(webApp, async (folder) => {
  const contract = await buildContract();
  const { output } = await build({
    configFile: fileURLToPath(new URL("../web/vite.config.ts", import.meta.url)),
    build: { outDir: folder, emptyOutDir: true },
    plugins: [serveModule("virtual:reference", makeReference(contract))],
    logLevel: "warn",
  });
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const content = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
  }
  for (const [path, content] of contract.files) {
    mkdirSync(dirname(join(folder, "proto", path)), { recursive: true });
    writeFileSync(join(folder, "proto", path), content);
  }
  return output.flatMap(({ moduleIds }) => moduleIds ?? []);
});

/** Lets the pages import this value under a name that no file has. */
function serveModule(name, value) {
  // Parsed by the browser as data, which is quicker than as a program.
  const code = `export default JSON.parse(${JSON.stringify(JSON.stringify(value))});`;
  return {
    name,
    resolveId: (id) => (id === name ? `\0${name}` : undefined),
    load: (id) => (id === `\0${name}` ? code : undefined),
  };
}

// npm run build:web: builds the dashboard and the API reference into dist/console, with compressed copies, and the
// downloadable contract into its folder proto/. `npm start` runs it when the sources have changed.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "vite";
import { replaceBuilt } from "./build.mjs";
import { buildContract } from "./reference/contract.ts";
import { webApp } from "./web-app.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
// Without this, NODE_ENV of the caller's environment could select development builds of React and Redoc.
process.env.NODE_ENV = "production";

await replaceBuilt(webApp, async (folder) => {
  const contract = await buildContract();
  const outputs = [];
  for (const config of ["vite.config.ts", "docs/vite.config.ts"]) {
    const configFile = fileURLToPath(new URL(`../web/${config}`, import.meta.url));
    const { output } = await build({
      configFile,
      // Without a warning about the time of plugins, which slow machines get.
      build: { outDir: folder, emptyOutDir: false, rolldownOptions: { checks: { pluginTimings: false } } },
      logLevel: "warn",
    });
    outputs.push(...output);
  }
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
  const modules = outputs.flatMap(({ moduleIds }) => moduleIds ?? []);
  return [...modules, ...modules.flatMap(filesBundledIn)];
});

/** Files of packages inside a prebundled file, from its source map, for packages that are installed. */
function filesBundledIn(path) {
  const map = `${path}.map`;
  if (!path.includes("/node_modules/") || !existsSync(map)) return [];
  return JSON.parse(readFileSync(map, "utf8"))
    .sources.map((source) => /node_modules\/.*/.exec(source)?.[0])
    .filter((file) => file !== undefined && existsSync(join(root, file)));
}

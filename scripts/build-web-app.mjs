// npm run build:web: builds the dashboard into dist/console, beside its files compressed ones. `npm start` does it by
// itself when the sources have changed.
import {
  chmodSync,
  mkdtempSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "vite";
import { hashWebAppSources, webAppFolder, webAppRecord } from "./web-app.mjs";

const sources = hashWebAppSources();
mkdirSync(dirname(webAppFolder), { recursive: true });
// Beside its place, and moved there when it is complete: nobody serves half of it.
const folder = mkdtempSync(`${webAppFolder}-`);
try {
  await build({
    configFile: fileURLToPath(new URL("../src/console/web/vite.config.ts", import.meta.url)),
    build: { outDir: folder, emptyOutDir: true },
    logLevel: "warn",
  });
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const content = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
  }
  writeFileSync(join(folder, webAppRecord), `${JSON.stringify({ sources })}\n`);
  // Temporary folders are for their owner alone, and who serves may be somebody else.
  chmodSync(folder, 0o755);
  rmSync(webAppFolder, { recursive: true, force: true });
  renameSync(folder, webAppFolder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

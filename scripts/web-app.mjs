// The built dashboard. Runs on any Node >= 18, without dependencies.
import { fileURLToPath } from "node:url";

/** Everything that the built files depend on. */
export const webAppSources = [
  "web",
  "gen/parley/console",
  "gen/google/rpc",
  // What the API reference is made of.
  "proto/parley/v1",
  "gen/parley/v1",
  "src/inbound/http/openapi",
  "src/formats/openai-chat",
  "src/inbound/http/exchange.ts",
  "src/inbound/http/json.ts",
  "src/core/failure.ts",
  "src/encoding/json-size.ts",
  "src/core/validate.ts",
  "src/inbound/failure-table.ts",
  "scripts/reference",
  "package-lock.json",
  "scripts/build-web-app.mjs",
];

/** @type {import("./build.mjs").Build} */
export const webApp = {
  name: "the dashboard",
  folder: fileURLToPath(new URL("../dist/console", import.meta.url)),
  sources: webAppSources,
  script: "scripts/build-web-app.mjs",
};

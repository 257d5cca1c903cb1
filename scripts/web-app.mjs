// The built dashboard. Runs on any Node >= 18, without dependencies.
import { fileURLToPath } from "node:url";

/** Everything that the built files depend on. */
export const webAppSources = [
  "web",
  "gen/parley/console",
  "gen/google/rpc",
  "src/inbound/failure-advice.ts",
  "docs/clients.md",
  // The downloadable contract.
  "proto/parley/v1",
  "gen/parley/v1",
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

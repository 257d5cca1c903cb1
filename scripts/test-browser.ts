// npm run test:browser [-- [--long] words that the names of test files contain, then flags of vitest]: builds the dashboard and
// tests it in Chromium.
import { type Lanes, readLaneArguments, runLanes } from "./test-lanes.ts";
import { runTool } from "./tools.ts";

const BROWSER: Lanes = {
  folder: "test/browser",
  config: "vitest.browser.config.ts",
  waiting: new Set(),
  alone: new Set(["speed"]),
  long: new Set([
    "admin-keys",
    "alerts",
    "density",
    "docs",
    "downloads",
    "end-users",
    "factors",
    "forms",
    "look",
    "models",
    "not-found",
    "object-pages",
    "own-credentials",
    "playground",
    "playground-compare",
    "request-table",
    "requests-restart",
    "running-state",
    "sign-in-provider",
    "snippets",
    "speed",
    "states",
    "stored-content",
  ]),
};

await runTool(process.execPath, ["scripts/build-web-app.mjs"]);
await runLanes(BROWSER, readLaneArguments(process.argv.slice(2)));

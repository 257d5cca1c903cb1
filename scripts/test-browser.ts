// npm run test:browser: builds the dashboard and tests it in Chromium.
import { runTests } from "./run-tests.ts";
import { runTool } from "./tools.ts";

await runTool(process.execPath, ["scripts/build-web-app.mjs"]);
await runTests(["--config", "vitest.browser.config.ts", ...process.argv.slice(2)]);

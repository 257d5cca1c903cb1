#!/usr/bin/env node
// npx parley [command]: runs Parley's command line, with the same installation and choice of Node as `npm start`.
process.argv.splice(2, 0, "src/main.ts");
await import("./run.mjs");

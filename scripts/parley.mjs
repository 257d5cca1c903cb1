#!/usr/bin/env node
// npx parley [command]: Parley's own command line, with the same care for the installation and the Node as `npm start`.
process.argv.splice(2, 0, "src/main.ts");
await import("./run.mjs");

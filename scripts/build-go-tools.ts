// Builds the Go programs that tests need, so that no test waits for it: node scripts/run.mjs scripts/build-go-tools.ts
import { goTools } from "./go-tools.ts";

for (const build of Object.values(goTools)) console.log(await build());

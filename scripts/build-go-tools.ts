// Builds the Go programs that test:packages needs, so that no test waits for them. `.ci/long` runs it first.
import { goTools } from "./go-tools.ts";

const { helm, composeReader } = goTools;
for (const build of [helm, composeReader]) console.log(await build());

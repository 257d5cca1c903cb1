// Builds the Go programs that .ci/run needs, so that no test waits for them.
import { goTools } from "./go-tools.ts";

const { helm, composeReader } = goTools;
for (const build of [helm, composeReader]) console.log(await build());

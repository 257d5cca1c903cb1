// Builds the Go programs that .ci/run needs, so that no test waits for them. The collector's test runs only by name.
import { goTools } from "./go-tools.ts";

const { helm, composeReader, litestream, s3Server } = goTools;
for (const build of [helm, composeReader, litestream, s3Server]) console.log(await build());

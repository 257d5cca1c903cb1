// npm run test:product [-- arguments of vitest]: builds the program and tests it as its users run it.
import { runTests } from "./run-tests.ts";

await runTests(["--config", "vitest.product.config.ts", ...process.argv.slice(2)]);

// npm run check: everything but the tests.
import { checks, reportResults, runChecks } from "./checks.ts";

reportResults(await runChecks(checks));

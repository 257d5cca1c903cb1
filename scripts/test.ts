// npm test: every check and every test. npm test -- <arguments of vitest>: only those tests.
import { checks } from "./checks.ts";
import { runTests } from "./run-tests.ts";

const args = process.argv.slice(2);
await runTests(args, { checks: args.length > 0 ? [] : checks });

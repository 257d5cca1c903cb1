// npm test: every check and every test. npm test -- <arguments of vitest>: only those tests.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checks, reportResults, runChecks } from "./checks.ts";
import { countTests } from "./test-count.ts";
import { runTool } from "./tools.ts";

const args = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), "parley-tests-"));
const reportPath = join(folder, "report.json");
const tests = {
  name: "tests",
  run: () => runTool("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile=${reportPath}`, ...args]),
};

try {
  reportResults(await runChecks(args.length > 0 ? [tests] : [...checks, tests]));
  const { passed, failed } = await countTests(reportPath);
  console.log(`${passed} passed, ${failed} failed`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

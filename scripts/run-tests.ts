import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Check, reportResults, runChecks } from "./checks.ts";
import { countTests } from "./test-count.ts";
import { runTool } from "./tools.ts";

/** Runs vitest with these arguments, after the checks, and says at the end how many tests passed and failed. */
export async function runTests(args: readonly string[], checks: readonly Check[] = []): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "parley-tests-"));
  const reportPath = join(folder, "report.json");
  const tests: Check = {
    name: "tests",
    run: () =>
      runTool("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile=${reportPath}`, ...args]),
  };
  try {
    reportResults(await runChecks([...checks, tests]));
    const { passed, failed } = await countTests(reportPath);
    console.log(`${passed} passed, ${failed} failed`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

import { readFile } from "node:fs/promises";

/** How many tests passed and failed. */
export interface TestCount {
  readonly passed: number;
  readonly failed: number;
}

/** What we read of the report that vitest writes with `--reporter=json`. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

/**
 * Counts the tests in a report of vitest. A file that could not be loaded has no tests in the report, and a run that
 * broke off leaves no report: each counts as one failure, so that "0 failed" always means what it says.
 */
export async function countTests(reportPath: string): Promise<TestCount> {
  const text = await readFile(reportPath, "utf8").catch(() => undefined);
  if (text === undefined) return { passed: 0, failed: 1 };
  const report = JSON.parse(text) as Report;
  const unloaded = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
  return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded.length };
}

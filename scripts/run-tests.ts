import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Check, reportResults, runChecks } from "./checks.ts";
import type { FileTime, Summary } from "./summary-reporter.ts";
import { runTool } from "./tools.ts";

const REPORTER = fileURLToPath(new URL("./summary-reporter.ts", import.meta.url));

/**
 * Node's compile cache for the processes and threads that tests start from the sources: to load TypeScript takes a thread 100 ms
 * without it, and 10 with it.
 */
const COMPILE_CACHE = fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url));

/** Arguments of a run of files that wait more than they compute, for configurations that run one file after another. */
export const TWO_AT_A_TIME: readonly string[] = ["--fileParallelism", "--maxWorkers=2"];

/** Files that are listed at the end, those that took the longest. */
const SLOWEST_FILES = 10;

/** Additional steps of a run of vitest. */
export interface TestRunOptions {
  /** Run before it, one after the other. */
  readonly checks?: readonly Check[];
  /** Arguments of further, concurrent runs. */
  readonly beside?: readonly (readonly string[])[];
}

/**
 * Runs vitest with these arguments, after the checks. Repeats the failures at the end, so that they are easy to find in a
 * long log, and prints which files took the longest, and how many tests passed and failed.
 */
export async function runTests(
  args: readonly string[],
  { checks = [], beside = [] }: TestRunOptions = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "parley-tests-"));
  const runs = [args, ...beside].map((given, index) => ({ given, path: join(folder, `summary-${index}.json`) }));
  let summaries: readonly Summary[] = [];
  const tests: Check = {
    name: "tests",
    async run() {
      const ended = await Promise.allSettled(runs.map(({ given, path }) => runVitest(given, path)));
      summaries = await Promise.all(runs.map(({ path }) => readSummary(path)));
      const failure = ended.find((run) => run.status === "rejected");
      if (failure !== undefined) throw failure.reason;
      // Vitest's exit code is not sufficient: the code that stops PostgreSQL at exit overwrites it with 0.
      if (summaries.some(({ failures, errors }) => failures.length + errors.length > 0))
        throw new Error("Not all tests have passed.");
      return undefined;
    },
  };
  try {
    reportResults(await runChecks([...checks, tests]));
    const passed = summaries.reduce((total, summary) => total + summary.passed, 0);
    const failures = summaries.flatMap((summary) => summary.failures);
    const errors = summaries.flatMap((summary) => summary.errors);
    console.log(`\nThe slowest files:\n${slowest(summaries.flatMap((summary) => summary.files))}`);
    for (const failure of failures) console.log(`\nfailed: ${failure}`);
    for (const error of errors) console.log(`\noutside of every test: ${error}`);
    console.log(`${passed} passed, ${failures.length + errors.length} failed`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function slowest(files: readonly FileTime[]): string {
  return files
    .toSorted((left, right) => right.seconds - left.seconds)
    .slice(0, SLOWEST_FILES)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(6)} s  ${file}`)
    .join("\n");
}

function runVitest(args: readonly string[], summaryPath: string): Promise<undefined> {
  const reporters = ["--reporter=default", `--reporter=${REPORTER}`];
  return runTool("vitest", ["run", ...reporters, ...args], {
    PARLEY_TEST_SUMMARY: summaryPath,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  });
}

/** A crashed run leaves no summary and counts as one failure, so that "0 failed" is reliable. */
async function readSummary(path: string): Promise<Summary> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return { passed: 0, failures: ["vitest broke off"], errors: [], files: [] };
  return JSON.parse(text) as Summary;
}

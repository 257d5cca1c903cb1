import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** Summary of a test run, printed at the end. */
export interface Summary {
  readonly passed: number;
  /** Each test that failed, and each file that could not be loaded: its place and error. */
  readonly failures: readonly string[];
  /** Errors outside of tests: an unhandled rejection, a crashed process of vitest. */
  readonly errors: readonly string[];
  readonly files: readonly FileTime[];
}

/** How long the tests and hooks of a file took, and loading it. */
export interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

/** Characters of an error that are repeated. */
const MAX_CHARS = 2_000;

/** Reporter of vitest: writes a Summary to the file that PARLEY_TEST_SUMMARY names. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(...[modules, errors]: Parameters<NonNullable<Reporter["onTestRunEnd"]>>): void {
    const path = process.env["PARLEY_TEST_SUMMARY"];
    if (path === undefined) throw new Error("PARLEY_TEST_SUMMARY names no file");
    const summary: Summary = {
      passed: modules.flatMap((module) => [...module.children.allTests("passed")]).length,
      failures: modules.flatMap(failuresOf),
      // Vitest notes which file was running.
      errors: errors.map((error) => `${JSON.stringify(error["VITEST_TEST_PATH"])}: ${text(error)}`),
      files: modules.map((module) => ({ file: module.relativeModuleId, seconds: secondsOf(module) })),
    };
    writeFileSync(path, JSON.stringify(summary));
  }
}

function secondsOf(module: TestModule): number {
  const { collectDuration, duration } = module.diagnostic();
  return (collectDuration + duration) / 1_000;
}

function failuresOf(module: TestModule): string[] {
  const { relativeModuleId: file } = module;
  const unloaded = module.errors().map((error) => `${file}: ${text(error)}`);
  const failed = [...module.children.allTests("failed")].map(
    (test) => `${file}: ${test.fullName}: ${test.result().errors?.map(text).join("; ")}`,
  );
  const hooks = [...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map((error) => `${file}: ${suite.fullName}: ${text(error)}`),
  );
  return [...unloaded, ...hooks, ...failed];
}

function text(error: { readonly message?: string; readonly stack?: string }): string {
  return (error.stack ?? error.message ?? JSON.stringify(error)).slice(0, MAX_CHARS);
}

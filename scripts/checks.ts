import { checkBreakingChanges } from "./breaking-changes.ts";
import { checkGeneratedCode } from "./generated-code.ts";
import { runTool } from "./tools.ts";

/** Why a check did not run; `undefined` when it ran and passed. */
export type SkipReason = string | undefined;

/** One check that every commit has to pass. */
export interface Check {
  readonly name: string;
  /** Rejects when the check fails. The reason has been printed, or is the error's message. */
  readonly run: () => Promise<SkipReason>;
}

/** Result of one check. */
export interface CheckResult {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly durationMs: number;
}

/** All checks without the tests, quick ones first. */
export const checks: readonly Check[] = [
  tool("formatting (npm run format)", "oxfmt", "--check"),
  tool("lint", "oxlint", "--type-aware", "--deny-warnings", "--report-unused-disable-directives"),
  tool("types", "tsc", "--project", "."),
  tool("types of the dashboard", "tsc", "--project", "web"),
  tool("lock file (npm run lock:complete)", process.execPath, "scripts/complete-lock.mjs", "--check"),
  tool("proto lint", "buf", "lint"),
  tool("proto formatting (npm run format)", "buf", "format", "proto", "--diff", "--exit-code"),
  { name: "generated code (npm run generate)", run: checkGeneratedCode },
  { name: "breaking changes of the contract", run: checkBreakingChanges },
];

/** Runs all checks one after another, also after failures, and prints their durations. */
export async function runChecks(list: readonly Check[]): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of list) {
    console.log(`\n── ${check.name}`);
    const startedAt = performance.now();
    const { outcome, note } = await runCheck(check);
    const durationMs = performance.now() - startedAt;
    console.log(`── ${check.name}: ${outcome}${note}, ${formatSeconds(durationMs)}`);
    results.push({ name: check.name, outcome, durationMs });
  }
  return results;
}

/** Prints one line per result and sets the exit code: 1 when any failed. */
export function reportResults(results: readonly CheckResult[]): void {
  console.log("");
  for (const { name, outcome, durationMs } of results) {
    console.log(`${outcome.toUpperCase().padEnd(7)} ${formatSeconds(durationMs).padStart(8)}  ${name}`);
  }
  const failed = results.filter(({ outcome }) => outcome === "failed");
  if (failed.length === 0) return;
  console.log(`\nFailed: ${failed.map(({ name }) => name).join(", ")}`);
  process.exitCode = 1;
}

async function runCheck(check: Check): Promise<{ outcome: CheckResult["outcome"]; note: string }> {
  try {
    const skipped = await check.run();
    return skipped === undefined ? { outcome: "passed", note: "" } : { outcome: "skipped", note: ` (${skipped})` };
  } catch (error) {
    if (error instanceof Error) console.error(error.message);
    return { outcome: "failed", note: "" };
  }
}

/** A check that is one command, which prints problems and exits with another code than 0. */
function tool(name: string, command: string, ...args: string[]): Check {
  return { name, run: () => runTool(command, args) };
}

function formatSeconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}

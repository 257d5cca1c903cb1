// npm run faults [-- --long] [--seed N] [--world M] [words that the names of test files contain]: tests Parley under
// faults, and prints the figures as a table at the end.
import { globSync } from "node:fs";
import { readFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Figure, sentence } from "../test/faults/support/figures.ts";
import { runTests, TWO_AT_A_TIME } from "./run-tests.ts";

/** A line of the report: a figure, and whether its limit was met. */
type Said = Figure & { readonly held: boolean };

const filesOf = (...names: readonly string[]): ReadonlySet<string> =>
  new Set(names.map((name) => `test/faults/${name}.test.ts`));

const COMMON: readonly string[] = ["--config", "vitest.faults.config.ts"];

/**
 * Tests of how much the gateway can serve, and of how long it takes over a start or what is hostile: they run last, when what .ci/run
 * builds is done, with nothing beside them.
 */
const ALONE = filesOf("admission", "crash", "fuzz-http", "hostile-bombs", "overload");

/** Tests that mostly wait: they run beside the others, two at a time. */
const MOSTLY_WAITING = filesOf(
  "cancelled",
  "large-answers",
  "revocation",
  "rolling-cores",
  "secrets",
  "soak",
  "stray-answers",
  "unread-refusals",
);

const { values, positionals } = parseArgs({
  options: { long: { type: "boolean", default: false }, seed: { type: "string" }, world: { type: "string" } },
  allowPositionals: true,
});
if (values.seed !== undefined && !/^\d{1,9}$/.test(values.seed)) {
  console.error(`--seed is a whole number of up to nine digits, not ${JSON.stringify(values.seed)}`);
  process.exit(2);
}
if (values.world !== undefined && !/^\d{1,9}$/.test(values.world)) {
  console.error(`--world is the number of a world of the simulation, not ${JSON.stringify(values.world)}`);
  process.exit(2);
}

const folder = await mkdtemp(join(tmpdir(), "parley-faults-"));
const report = join(folder, "figures.jsonl");
process.env["PARLEY_FAULTS_REPORT"] = report;
if (values.long) process.env["PARLEY_FAULTS_LONG"] = "1";
// A fixed seed in CI; a random one for a long run.
const seed = values.seed ?? (values.long ? String(Math.floor(Math.random() * 1e9)) : undefined);
if (seed !== undefined) process.env["PARLEY_FAULTS_SEED"] = seed;
// Runs only this world of the simulation; a failing run prints its number.
if (values.world !== undefined) process.env["PARLEY_FAULTS_WORLD"] = values.world;

try {
  for (const [first = [], ...beside] of phasesOf(positionals)) await runTests(first, { beside });
} finally {
  const lines = await readFile(report, "utf8").catch(() => "");
  for (const line of lines.split("\n").filter((text) => text !== "")) console.log(tableRow(JSON.parse(line) as Said));
  if (seed !== undefined) console.log(`seed: ${seed}`);
  await rm(folder, { recursive: true, force: true });
}

/** The arguments of vitest's runs: phases of concurrent runs. */
function phasesOf(words: readonly string[]): string[][][] {
  const files = globSync("test/faults/**/*.test.ts").filter(
    (file) => words.length === 0 || words.some((word) => file.includes(word)),
  );
  const alone = files.filter((file) => ALONE.has(file));
  const waiting = files.filter((file) => MOSTLY_WAITING.has(file));
  const others = files.filter((file) => !ALONE.has(file) && !MOSTLY_WAITING.has(file));
  // Vitest reports words without a matching file.
  if (files.length === 0) return [[[...COMMON, ...words]]];
  const runs = (lane: readonly string[], flags: readonly string[] = []): string[][] =>
    lane.length === 0 ? [] : [[...COMMON, ...flags, ...lane]];
  return [[...runs(others), ...runs(waiting, TWO_AT_A_TIME)], runs(alone)].filter((phase) => phase.length > 0);
}

function tableRow(said: Said): string {
  return `${said.held ? "ok    " : "MISSED"}  ${sentence(said)}`;
}

// npm run faults [-- --long] [--seed N] [--world M] [words that the names of test files contain]: what Parley keeps when everything
// around it breaks, with the figures in a table at the end.
import { readFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Figure, sentence } from "../test/faults/support/figures.ts";
import { runTests } from "./run-tests.ts";

/** A line of the report: a figure, and whether it was reached. */
type Said = Figure & { readonly held: boolean };

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
// In CI always the same; a long run looks somewhere new each time.
const seed = values.seed ?? (values.long ? String(Math.floor(Math.random() * 1e9)) : undefined);
if (seed !== undefined) process.env["PARLEY_FAULTS_SEED"] = seed;
// Only this world of the simulation, which a failing run names.
if (values.world !== undefined) process.env["PARLEY_FAULTS_WORLD"] = values.world;

try {
  await runTests(["--config", "vitest.faults.config.ts", ...positionals]);
} finally {
  const lines = await readFile(report, "utf8").catch(() => "");
  for (const line of lines.split("\n").filter((text) => text !== "")) console.log(tableRow(JSON.parse(line) as Said));
  if (seed !== undefined) console.log(`seed: ${seed}`);
  await rm(folder, { recursive: true, force: true });
}

function tableRow(said: Said): string {
  return `${said.held ? "ok    " : "MISSED"}  ${sentence(said)}`;
}

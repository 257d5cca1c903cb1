// npm run faults [-- --long] [--seed N] [--world M] [words that the names of test files contain]: tests Parley under
// faults, and prints the figures as a table at the end.
import { readFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Figure, sentence } from "../test/faults/support/figures.ts";
import { type Lanes, runLanes } from "./test-lanes.ts";

/** A line of the report: a figure, and whether its limit was met. */
type ReportLine = Figure & { readonly held: boolean };

const FAULTS: Lanes = {
  folder: "test/faults",
  config: "vitest.faults.config.ts",
  waiting: new Set([
    "cancelled",
    "certificates",
    "cold-starts",
    "drain",
    "failing-upstreams",
    "full-disk",
    "hanging-collector",
    "held-calls",
    "hostile-slow",
    "hostile-tls",
    "large-answers",
    "revocation",
    "rolling-cores",
    "rolling-restart",
    "secrets",
    "soak",
    "stray-answers",
    "unread-refusals",
  ]),
  alone: new Set(["admission", "crash", "fuzz-http", "hostile-bombs", "overload"]),
  long: new Set(["admission", "overload", "rolling-cores", "soak"]),
};

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
// A fixed seed in CI; a random one for a long run.
const seed = values.seed ?? (values.long ? String(Math.floor(Math.random() * 1e9)) : undefined);
if (seed !== undefined) process.env["PARLEY_FAULTS_SEED"] = seed;
// Runs only this world of the simulation; a failing run prints its number.
if (values.world !== undefined) process.env["PARLEY_FAULTS_WORLD"] = values.world;

try {
  await runLanes(FAULTS, { words: positionals, isLong: values.long });
} finally {
  const lines = await readFile(report, "utf8").catch(() => "");
  for (const line of lines.split("\n").filter((text) => text !== ""))
    console.log(tableRow(JSON.parse(line) as ReportLine));
  if (seed !== undefined) console.log(`seed: ${seed}`);
  await rm(folder, { recursive: true, force: true });
}

function tableRow(line: ReportLine): string {
  return `${line.held ? "ok    " : "MISSED"}  ${sentence(line)}`;
}

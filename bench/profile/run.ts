import { copyFileSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { askChild, stopChild } from "../children.ts";
import { startGenerator } from "../contestants/line-up.ts";
import { startParley } from "../contestants/parley.ts";
import { probe } from "../contestants/probe.ts";
import type { Setting } from "../contestants/server.ts";
import { INSTRUMENTED } from "../inside/instrumented.ts";
import type { Question } from "../inside/instruments.ts";
import type { SliceReply } from "../load/generator.ts";
import { unitOf } from "../loads.ts";
import { runSlice } from "../measure/rounds.ts";
import { type AllocationProfile, type AllocationSummary, summariseAllocations } from "./allocations.ts";
import type { Cost, CostSummary } from "./costs.ts";
import { type CpuProfile, type ProfileSummary, summariseProfile } from "./summary.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const WARM_UP_SECONDS = 8;
const PROFILE_SECONDS = 5;
const ALLOCATION_SECONDS = 3;
const INTERVAL_US = 250;
const TOP = 20;

/**
 * Takes a CPU profile of Parley under a load and then one of its allocations, writes both to `results`, and returns
 * their summaries as text. They are taken one after the other, because the second slows down the first.
 */
export async function profileLoad(setting: Setting, results: string): Promise<string> {
  const { load } = setting;
  const folder = mkdtempSync(join(setting.folder, "profile-"));
  const allocationsFile = join(folder, "allocations.heapprofile");
  const cpuProfile = ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${INTERVAL_US}`];
  const server = await startParley({
    ...setting,
    nodeOptions: [...cpuProfile, ...INSTRUMENTED],
    fromSources: true,
  });
  const span = { fromUs: 0, toUs: 0 };
  let units = 0;
  try {
    await probe(server, load);
    const generator = await startGenerator(load, server);
    const run = (seconds: number): Promise<SliceReply> => runSlice(generator, seconds);
    try {
      await runFor(WARM_UP_SECONDS, run);
      span.fromUs = nowUs();
      await runFor(PROFILE_SECONDS, run);
      span.toUs = nowUs();
      await askChild(server.process, { ask: "sample allocations" } satisfies Question);
      const replies = await runFor(ALLOCATION_SECONDS, run);
      await askChild(server.process, { ask: "write allocations", file: allocationsFile } satisfies Question);
      units = replies.reduce((sum, { answers, marks }) => sum + (load.streamed ? marks : answers), 0);
    } finally {
      await stopChild(generator);
    }
  } finally {
    // The profile is written at a regular exit only.
    await stopChild(server.process);
  }
  const kept = join(results, load.name.replace(/[^a-z0-9]+/gi, "-").toLowerCase());
  const cpu = keep(pathOfLargest(folder), `${kept}.cpuprofile`) as CpuProfile;
  const allocations = keep(allocationsFile, `${kept}.heapprofile`) as AllocationProfile;
  return [
    load.name,
    formatTime(summariseProfile(cpu, ROOT, span)),
    formatAllocations(summariseAllocations(allocations, ROOT), unitOf(load), units),
    `  ${kept}.cpuprofile, .heapprofile`,
  ].join("\n");
}

function keep(file: string, kept: string): unknown {
  copyFileSync(file, kept);
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Runs slices until this time has passed; slices of a paced load are shorter. */
async function runFor<T>(seconds: number, run: (seconds: number) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  const endUs = nowUs() + seconds * 1e6;
  for (let left = seconds; left > 0; left = (endUs - nowUs()) / 1e6) results.push(await run(left));
  return results;
}

/** The clock of a profile's times. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Picks the main thread's profile, the largest: there is one per thread. */
function pathOfLargest(folder: string): string {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".cpuprofile"))
    .map((name) => join(folder, name));
  const sizes = new Map(files.map((file) => [file, readFileSync(file).length]));
  const [largest] = files.toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
  if (largest === undefined) throw new Error("Parley left no profile");
  return largest;
}

function formatTime({ busyMs, ...summary }: ProfileSummary): string {
  const title = `  busy ${Math.round(busyMs)} ms; shares of it: in the code itself, and with what it called outside src/`;
  return [title, ...formatCosts(summary)].join("\n");
}

function formatAllocations({ bytes, ...summary }: AllocationSummary, unit: string, units: number): string {
  const each = Math.round(bytes / units).toLocaleString("en");
  return [`  ${each} bytes of V8's heap allocated per ${unit}; shares of it`, ...formatCosts(summary)].join("\n");
}

function formatCosts({ layers, functions, ours }: CostSummary): readonly string[] {
  return [
    "  by layer",
    ...layers.slice(0, TOP).map(line),
    "  by function, its own",
    ...functions.slice(0, TOP).map(({ name, self }) => `    ${percent(self)}  ${name}`),
    "  by function of src/, with what it called",
    ...ours.slice(0, TOP).map(line),
  ];
}

function line({ name, self, charged }: Cost): string {
  return `    ${percent(self)} ${percent(charged)}  ${name}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1).padStart(5)} %`;
}

import { copyFileSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { stopChild } from "../children.ts";
import { startGenerator } from "../contestants/line-up.ts";
import { startParley } from "../contestants/parley.ts";
import { probe } from "../contestants/probe.ts";
import type { Setting } from "../contestants/server.ts";
import { runSlice } from "../measure/rounds.ts";
import { type Cost, type CpuProfile, type ProfileSummary, summariseProfile } from "./summary.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const WARM_UP_SECONDS = 2;
const PROFILE_SECONDS = 5;
const INTERVAL_US = 250;
const TOP = 20;

/** Takes a CPU profile of Parley under a load, keeps it in `results`, and gives its summary as text. */
export async function profileLoad(setting: Setting, results: string): Promise<string> {
  const { load } = setting;
  const folder = mkdtempSync(join(setting.folder, "profile-"));
  const nodeOptions = ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${INTERVAL_US}`];
  const server = await startParley({ ...setting, nodeOptions });
  let fromUs = 0;
  let toUs = 0;
  try {
    await probe(server, load);
    const generator = await startGenerator(load, server);
    try {
      await runFor(WARM_UP_SECONDS, (seconds) => runSlice(generator, seconds));
      fromUs = nowUs();
      await runFor(PROFILE_SECONDS, (seconds) => runSlice(generator, seconds));
      toUs = nowUs();
    } finally {
      await stopChild(generator);
    }
  } finally {
    // The profile is written when the process ends by itself.
    await stopChild(server.process);
  }
  const profile = pathOfLargest(folder);
  const kept = join(results, `${load.name.replace(/[^a-z0-9]+/gi, "-").toLowerCase()}.cpuprofile`);
  copyFileSync(profile, kept);
  const parsed = JSON.parse(readFileSync(profile, "utf8")) as CpuProfile;
  return `${load.name}\n${format(summariseProfile(parsed, ROOT, { fromUs, toUs }))}\n  ${kept}`;
}

/** Runs slices until so much time has passed: those of a paced load are shorter than that. */
async function runFor(seconds: number, run: (seconds: number) => Promise<unknown>): Promise<void> {
  const endUs = nowUs() + seconds * 1e6;
  for (let left = seconds; left > 0; left = (endUs - nowUs()) / 1e6) await run(left);
}

/** The clock of a profile's times. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** One profile per thread: the main thread's is the one that was busy. */
function pathOfLargest(folder: string): string {
  const files = readdirSync(folder).map((name) => join(folder, name));
  const sizes = new Map(files.map((file) => [file, readFileSync(file).length]));
  const [largest] = files.toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
  if (largest === undefined) throw new Error("Parley left no profile");
  return largest;
}

function format({ busyMs, layers, functions, ours }: ProfileSummary): string {
  return [
    `  busy ${Math.round(busyMs)} ms; shares of it: in the code itself, and with what it called outside src/`,
    "  by layer",
    ...layers.slice(0, TOP).map(line),
    "  by function, own time",
    ...functions.slice(0, TOP).map(({ name, self }) => `    ${percent(self)}  ${name}`),
    "  by function of src/, with what it called",
    ...ours.slice(0, TOP).map(line),
  ].join("\n");
}

function line({ name, self, charged }: Cost): string {
  return `    ${percent(self)} ${percent(charged)}  ${name}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1).padStart(5)} %`;
}

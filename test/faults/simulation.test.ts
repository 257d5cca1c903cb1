import { describe, expect, it } from "vitest";
import type { Breach } from "./simulation/watch.ts";
import { World } from "./simulation/world.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "./support/scale.ts";

/*
 * The core, the router, the limits, the keys' cache and the ledger of several processes, joined as the gateway joins
 * them, on a clock that is moved by hand, with everything around them breaking. Small worlds, each from a seed of its own:
 * `npm run faults -- simulation --seed N --world M` lives through one of them again.
 */

/** Completions of one world: enough for many at once, few enough to be read about. */
const WORLD_SIZE = 250;
/** After so many worlds it says how far it is. */
const WORLDS_PER_WORD = 200;
/** Worlds that are told about; one fault breaks many. */
const MAX_TOLD = 3;

/** What has to have happened for it to mean anything that nothing broke. */
const EXERCISED = [
  "outcomes: served",
  "outcomes: cancelled",
  "outcomes: deadline_exceeded",
  "outcomes: overloaded",
  "outcomes: unauthenticated",
  "outcomes: rate_limited",
  "outcomes: budget_spent",
  "outcomes: internal",
  "outcomes: upstream_rejected",
  "outcomes: upstream_rate_limited",
  "outcomes: upstream_unavailable",
  "outcomes: upstream_timeout",
  "outcomes: upstream_protocol",
  "outcomes: upstream_refused_us",
  "retries",
  "fallbacks",
  "rests",
  "probes",
  "database: away",
  "database: deaf",
  "entries that a start wrote",
  "completions that were settled later",
  "holds that were extended",
  "keys revoked aloud",
  "keys revoked vaguely",
  "keys revoked silently",
  "happenings: reload",
  "happenings: limits",
  "restarts: rolling",
  "restarts: in turn",
  "restarts: cut short",
  "restarts: killed",
];

describe("the simulation", () => {
  const only = process.env["PARLEY_FAULTS_WORLD"];
  const total = scale(10_000, 1_000_000);

  it("keeps every promise, whatever breaks", { timeout: timeLimit(180, 3_600) }, async () => {
    const counts = new Map<string, number>();
    const breaches: Breach[] = [];
    let told = 0;
    let lived = 0;
    const began = process.cpuUsage();
    for (const index of only === undefined ? numbersBelow(total / WORLD_SIZE) : [Number(only)]) {
      const world = await live(index, counts);
      lived += 1;
      // Someone waits for the long one for minutes.
      if (lived % WORLDS_PER_WORD === 0) console.log(`${lived * WORLD_SIZE} completions, ${breaches.length} breaches`);
      breaches.push(...world.journal.breaches);
      if (world.journal.breaches.length === 0) continue;
      told += 1;
      console.error(`world ${index}: npm run faults -- simulation --seed ${seed()} --world ${index}`);
      console.error(world.journal.tell());
      if (told >= MAX_TOLD) break;
    }
    const used = process.cpuUsage(began);
    // Not of the wall's time, in which others run, too.
    const seconds = (used.user + used.system) / 1e6;
    const lines = [...counts].map(([what, count]) => `${what}: ${count}`);
    console.log(lines.toSorted((one, other) => one.localeCompare(other)).join("\n"));
    const broken = (promised: readonly string[]): number =>
      breaches.filter((breach) => promised.includes(breach.promised)).length;
    const nothing = { unit: "", atMost: 0 };
    const perSecond = Math.round((lived * WORLD_SIZE) / seconds);
    figure({ name: "simulated completions per second of processor time", value: perSecond, unit: "" });
    figure({ name: "lost, repeated or foreign chunks", value: broken(["chunks"]), ...nothing });
    figure({ name: "ledger differences", value: broken(["ledger"]), ...nothing });
    const others = broken(["limits", "attempts", "keys", "end"]);
    figure({ name: "other promises of the simulation broken", value: others, ...nothing });
    if (only !== undefined) return;
    figure({ name: "simulated completions", value: lived * WORLD_SIZE, unit: "", atLeast: total });
    expect(EXERCISED.filter((what) => !counts.has(what))).toEqual([]);
  });

  it("repeats the same world", async () => {
    const index = Number(only ?? 0);
    const [once, again] = [await live(index), await live(index)];
    expect(again.written()).toBe(once.written());
    expect(once.written().length).toBeGreaterThan(1_000);
  });
});

async function live(index: number, counts = new Map<string, number>()): Promise<World> {
  const world = new World(`${seed()}/${index}`, WORLD_SIZE, counts);
  await world.run();
  return world;
}

function numbersBelow(end: number): number[] {
  return Array.from({ length: Math.ceil(end) }, (_, index) => index);
}

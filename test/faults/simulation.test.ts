import { describe, expect, it } from "vitest";
import type { Breach } from "./simulation/watch.ts";
import { World } from "./simulation/world.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "../support/scale.ts";

/*
 * Runs core, router, limits, key cache and ledger of several processes, connected as in the gateway, on a fake clock,
 * with faults in everything around them. Many small worlds, each from its own seed: `npm run faults -- simulation
 * --seed N --world M` repeats one of them.
 */

/** Completions of one world: enough for concurrency, few enough to read. */
const WORLD_SIZE = 250;
/** Progress is printed after this many worlds. */
const WORLDS_PER_WORD = 200;
/** Number of broken worlds that are described; one fault breaks many. */
const MAX_TOLD = 3;

/** Events that have to occur for the run to be meaningful. */
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
  "circuit breakers opened",
  "probes",
  "database: away",
  "database: deaf",
  "entries that a start wrote",
  "completions that were settled later",
  "holds that were extended",
  "refused by a rate of an end user",
  "refused by the budget of an end user",
  "refused by the budget of a session",
  "refused by an own budget of an end user",
  "refused by an own budget of a session",
  "admitted under an own budget",
  "keys revoked with a notification",
  "keys revoked with a general notification",
  "keys revoked without notification",
  "events: reload",
  "events: limits",
  "events: own",
  "restarts: rolling",
  "restarts: in turn",
  "restarts: cut short",
  "restarts: killed",
];

describe("the simulation", () => {
  const only = process.env["PARLEY_FAULTS_WORLD"];
  const total = scale(10_000, 1_000_000);

  it("keeps every invariant under faults", { timeout: timeLimit(180, 3_600) }, async () => {
    const counts = new Map<string, number>();
    const breaches: Breach[] = [];
    let told = 0;
    let finished = 0;
    const began = process.cpuUsage();
    for (const index of only === undefined ? numbersBelow(total / WORLD_SIZE) : [Number(only)]) {
      const world = await live(index, counts);
      finished += 1;
      // A long run takes minutes, so print its progress.
      if (finished % WORLDS_PER_WORD === 0)
        console.log(`${finished * WORLD_SIZE} completions, ${breaches.length} breaches`);
      breaches.push(...world.journal.breaches);
      if (world.journal.breaches.length === 0) continue;
      told += 1;
      console.error(`world ${index}: npm run faults -- simulation --seed ${seed()} --world ${index}`);
      console.error(world.journal.tell());
      if (told >= MAX_TOLD) break;
    }
    const used = process.cpuUsage(began);
    // Processor time, because wall time includes other programs.
    const seconds = (used.user + used.system) / 1e6;
    const lines = [...counts].map(([what, count]) => `${what}: ${count}`);
    console.log(lines.toSorted((one, other) => one.localeCompare(other)).join("\n"));
    const broken = (promised: readonly string[]): number =>
      breaches.filter((breach) => promised.includes(breach.promised)).length;
    const nothing = { unit: "", atMost: 0 };
    const perSecond = Math.round((finished * WORLD_SIZE) / seconds);
    figure({ name: "simulated completions per second of processor time", value: perSecond, unit: "" });
    figure({ name: "lost, repeated or foreign chunks", value: broken(["chunks"]), ...nothing });
    figure({ name: "ledger differences", value: broken(["ledger"]), ...nothing });
    const others = broken(["limits", "attempts", "keys", "end"]);
    figure({ name: "other violated invariants of the simulation", value: others, ...nothing });
    if (only !== undefined) return;
    figure({ name: "simulated completions", value: finished * WORLD_SIZE, unit: "", atLeast: total });
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

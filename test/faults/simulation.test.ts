import { expect, it } from "vitest";
import { World } from "./simulation/world.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "./support/scale.ts";

/** Completions of one world: enough for many at once, few enough to read. */
const WORLD = 250;

it("keeps its promises", { timeout: timeLimit(120, 3_000) }, async () => {
  const counts = new Map<string, number>();
  const only = process.env["PARLEY_FAULTS_WORLD"];
  const total = scale(10_000, 1_000_000);
  const worlds =
    only === undefined ? Array.from({ length: Math.ceil(total / WORLD) }, (_, index) => index) : [Number(only)];
  const began = performance.now();
  let broken = 0;
  for (const index of worlds) {
    const world = new World(`${seed()}/${index}`, WORLD, counts);
    await world.run();
    if (world.journal.breaches.length > 0) {
      console.error(`world ${index}\n${world.journal.tell()}`);
      broken += 1;
      if (broken >= 2) break;
    }
  }
  const seconds = (performance.now() - began) / 1000;
  for (const [name, count] of [...counts].toSorted()) console.log(`${name}: ${count}`);
  figure({ name: "simulated completions per second", value: Math.round((worlds.length * WORLD) / seconds), unit: "" });
  expect(broken).toBe(0);
});

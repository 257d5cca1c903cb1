import { describe, expect, it } from "vitest";
import { CHAOS_PERCENT, drawFault, parseFault } from "../../src/simulator/faults.ts";
import { openSimulator, post } from "./support/simulators.ts";

const NUMBERS = Array.from({ length: 2_000 }, (_, index) => index + 1);

/** Returns the number of the first request with a fault that matches. */
function findDraw(seed: number, pattern: RegExp): number {
  return NUMBERS.find((number) => pattern.test(drawFault({ seed, percent: 100 }, number) ?? ""))!;
}

describe("chaos", () => {
  it("draws the same faults for the same seed, and different ones for another seed", () => {
    const draw = (seed: number) => NUMBERS.map((number) => drawFault({ seed, percent: 50 }, number));
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it.each([1, CHAOS_PERCENT, 100])("applies faults to about %i percent of requests", (percent) => {
    const faults = NUMBERS.filter((number) => drawFault({ seed: 7, percent }, number) !== undefined);
    expect(faults.length / NUMBERS.length).toBeGreaterThan((percent - 3) / 100);
    expect(faults.length / NUMBERS.length).toBeLessThan((percent + 3) / 100);
  });

  it("draws only valid faults, and every kind of fault", () => {
    const faults = NUMBERS.map((number) => parseFault(drawFault({ seed: 7, percent: 100 }, number) ?? "explode"));
    const kinds = new Set(
      faults.map(({ failure }) => (failure?.kind === "break" ? failure.how : (failure?.kind ?? "slow"))),
    );
    const all = "cut empty error garbage gzip hang html no-content reset slow status truncate wrong-length";
    expect([...kinds].toSorted().join(" ")).toBe(all);
  });

  it("depends only on the order of requests, reproducibly", async () => {
    const chaos = { seed: findSeedWithoutSilence(), percent: 60 };
    const ask = async (): Promise<string[]> => {
      const simulator = await openSimulator({ chaos });
      const outcomes: string[] = [];
      for (let count = 0; count < 12; count += 1)
        outcomes.push(await outcomeOf(post(simulator, { dialect: "openai" })));
      expect(simulator.requests.recent.map(({ fault }) => fault)).toEqual(
        outcomes.map((_, index) => drawFault(chaos, index + 1)),
      );
      return outcomes;
    };
    const first = await ask();
    expect(await ask()).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(2);
  });

  it("does not affect a request with its own fault", async () => {
    const seed = 3;
    const before = findDraw(seed, /^status=5/);
    const simulator = await openSimulator({ chaos: { seed, percent: 100 } });
    for (let count = 1; count < before; count += 1) {
      const response = await post(simulator, { dialect: "openai", headers: { "x-simulator-fault": "status=418" } });
      expect(response.status).toBe(418);
    }
    expect((await post(simulator, { dialect: "openai" })).status).toBeGreaterThanOrEqual(500);
  });
});

/** Returns a seed without hangs or delays in the first 12 requests. */
function findSeedWithoutSilence(): number {
  return NUMBERS.find((seed) =>
    NUMBERS.slice(0, 12).every((number) => !/hang|delay|drip/.test(drawFault({ seed, percent: 60 }, number) ?? "")),
  )!;
}

async function outcomeOf(asked: Promise<Response>): Promise<string> {
  try {
    const response = await asked;
    return `${response.status} ${(await response.text()).length}`;
  } catch {
    return "broken";
  }
}

import { describe, expect, it } from "vitest";
import type { Hedge } from "../../src/core/model.ts";
import { asking, Pool, seeded, sendHedged, type SimulatedTarget } from "./route-simulation.ts";

/** Requests of each simulation; docs/development.md says how a million are simulated. */
const REQUESTS = Number(process.env["PARLEY_ROUTE_REQUESTS"] ?? 15_000);
/** Larger numbers of requests come closer to the shares. */
const TOLERANCE = REQUESTS >= 1_000_000 ? 0.01 : 0.05;

describe("weights", () => {
  const targets = { a: { weight: 6 }, b: { weight: 3 }, c: { weight: 1 } };

  it.each([
    ["of requests", false],
    ["of conversations", true],
  ])("are the shares %s", (_, affinity) => {
    const pool = new Pool({ targets, policy: "weighted", affinity, random: seeded(1) });
    const served: Record<string, number> = { a: 0, b: 0, c: 0 };
    for (let number = 0; number < REQUESTS; number++) {
      served[pool.send(asking(`Conversation ${number}`))!.id]! += 1;
      pool.clock.advance(1);
    }
    for (const [id, { weight }] of Object.entries(targets))
      expect(Math.abs(served[id]! / REQUESTS / (weight / 10) - 1), id).toBeLessThan(TOLERANCE);
  });
});

/** Latencies of five targets, in milliseconds at a time. */
type Latencies = Readonly<Record<string, (nowMs: number) => number>>;

const steady: Latencies = { a: () => 2_000, b: () => 440, c: () => 400, d: () => 410, e: () => 8_000 };

/** Each target has another latency every 100 s, between 300 and 3,000 ms. */
const changing: Latencies = Object.fromEntries(
  ["a", "b", "c", "d", "e"].map((id, index) => [
    id,
    (nowMs) => 300 * 10 ** seeded(Math.floor(nowMs / 100_000) * 5 + index)(),
  ]),
);

describe("least latency", () => {
  it.each([
    ["steady latencies", steady],
    ["changing latencies", changing],
  ])("is at most 5 %% above the best target, with %s", (_, latencies) => {
    const random = seeded(2);
    const noisy = (ms: number): number => ms * (0.8 + 0.4 * random());
    const targets = Object.fromEntries(
      Object.entries(latencies).map(([id, at]): [string, SimulatedTarget] => [
        id,
        { firstContentMs: (nowMs) => noisy(at(nowMs)) },
      ]),
    );
    const pool = new Pool({ targets, policy: "least_latency", affinity: false, random: seeded(3) });
    let waitedMs = 0;
    const fixedMs: Record<string, number> = { a: 0, b: 0, c: 0, d: 0, e: 0 };
    const request = asking("hi");
    for (let number = 0; number < REQUESTS; number++) {
      waitedMs += pool.send(request)!.ms;
      for (const [id, at] of Object.entries(latencies)) fixedMs[id]! += at(pool.clock.monotonic());
      pool.clock.advance(20);
    }
    expect(waitedMs).toBeLessThan(1.05 * Math.min(...Object.values(fixedMs)));
  });
});

describe("hedging", () => {
  it("cuts the time to the first content at the 99th percentile by 40 %, for at most 5 % more calls", async () => {
    const requests = REQUESTS >= 1_000_000 ? REQUESTS : 4_000;
    const percentile99 = (values: readonly number[]): number =>
      values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)]!;
    const simulate = (hedge: Hedge | undefined) => {
      const random = seeded(5);
      // 400 to 800 ms, and of 3 % of the calls ten times as long.
      const drawMs = (): number => (400 + 400 * random()) * (random() < 0.03 ? 10 : 1);
      return sendHedged({ requests, hedge, random: seeded(6), drawMs });
    };
    const without = await simulate(undefined);
    const hedged = await simulate({ after: { percentile: 95 }, budget: 0.05 });
    const [before, now] = [without, hedged].map(({ waitedMs }) => percentile99(waitedMs)) as [number, number];
    expect(now / before).toBeLessThan(0.6);
    expect(hedged.calls / requests).toBeLessThanOrEqual(1.05);
    expect(without.calls).toBe(requests);
  });
});

describe("affinity", () => {
  /** How long a provider keeps a prefix after its last use. */
  const CACHED_MS = 300_000;
  /** Between two turns of a conversation. */
  const PAUSE_MS = 20_000;
  const TURNS = 10;

  it("finds the cached prefix in 95 % of the turns while one of five targets goes down and returns", () => {
    const random = seeded(4);
    const dies = (nowMs: number): boolean => nowMs - beganMs > lengthMs * 0.3 && nowMs - beganMs < lengthMs * 0.6;
    const targets: Record<string, SimulatedTarget> = {
      a: {},
      b: {},
      c: { isDown: (nowMs) => dies(nowMs) },
      d: {},
      e: {},
    };
    for (const [id, target] of Object.entries(targets)) targets[id] = { ...target, firstContentMs: () => 500 };
    const pool = new Pool({ targets, policy: "weighted", affinity: true, random, restMs: 4_500 });
    const beganMs = pool.clock.monotonic();
    const perSecond = 50;
    const lengthMs = (REQUESTS / perSecond) * 1_000;
    /** When each target last saw each conversation. */
    const caches = new Map(Object.keys(targets).map((id) => [id, new Map<number, number>()]));
    let [hits, turns] = [0, 0];
    const take = (conversation: number, turn: number): void => {
      const nowMs = pool.clock.monotonic();
      if (dies(nowMs)) caches.get("c")!.clear();
      const served = pool.send(asking(`Conversation ${conversation}`))!.id;
      const cache = caches.get(served)!;
      if (turn > 0) {
        turns += 1;
        if ((cache.get(conversation) ?? -Infinity) > nowMs - CACHED_MS) hits += 1;
      }
      cache.set(conversation, nowMs);
      if (turn + 1 < TURNS) pool.clock.after(PAUSE_MS * (0.5 + random()), () => take(conversation, turn + 1));
    };
    for (let conversation = 0; conversation < REQUESTS / TURNS; conversation++) {
      take(conversation, 0);
      pool.clock.advance((TURNS / perSecond) * 1_000);
    }
    expect(hits / turns).toBeGreaterThan(0.95);
  });
});

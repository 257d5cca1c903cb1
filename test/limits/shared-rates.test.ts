import { describe, expect, it } from "vitest";
import { sleep } from "../../src/core/clock.ts";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { LEASE_MS, type RateStore, RateStoreError, type RateStoreScope } from "../../src/limits/rates.ts";
import { createSharedRates, type RatesState, type SharedRatesOptions } from "../../src/limits/shared-rates.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { demandOf, subjectOf } from "./demands.ts";
import { describeRateStore, toRelease } from "./rate-store-contract.ts";

const BURST_MS = 60_000;

/** A store that several replicas share, and that can be unavailable. */
function createWorld(replicas = 3) {
  const clock = new FakeClock();
  const shared = createMemoryRates({ clock, burstMs: BURST_MS });
  const world = {
    away: false,
    scope: "store" as RateStoreScope,
    answersAfterMs: 0,
    replicas,
    asked: 0,
    changes: [] as [RatesState, number][],
  };
  const whenThere = async <T>(work: () => Promise<T>): Promise<T> => {
    world.asked += 1;
    if (world.away) throw new RateStoreError("away", { scope: world.scope });
    if (world.answersAfterMs > 0) await sleep(clock, world.answersAfterMs);
    return await work();
  };
  const remote: RateStore = {
    take: (demand) => whenThere(() => shared.take(demand)),
    release: (release) => whenThere(() => shared.release(release)),
    renew: (renewal) => whenThere(async () => Math.max(await shared.renew(renewal), world.replicas)),
    close: async () => undefined,
  };
  const onChange: SharedRatesOptions["onChange"] = (state, { replicas: count }) =>
    void world.changes.push([state, count]);
  const rates = createSharedRates({ remote, clock, burstMs: BURST_MS, replica: "one", onChange });
  return { world, clock, rates, remote };
}

async function admittedOf(rates: RateStore, count: number, limits: Parameters<typeof subjectOf>[1]): Promise<number> {
  let admitted = 0;
  for (let index = 0; index < count; index += 1)
    if ((await rates.take(demandOf([subjectOf("key:1", limits)], 1))).admitted) admitted += 1;
  return admitted;
}

describeRateStore("a remote store that is there", async () => ({ stores: [createWorld().rates] }));

describe("rates whose shared store is unavailable", () => {
  it.each([
    ["requests", { requestsPerMinute: 100 }, 33],
    ["tokens", { tokensPerMinute: 100 }, 33],
    ["slots", { concurrentRequests: 100 }, 33],
    ["requests, fewer than replicas", { requestsPerMinute: 2 }, 1],
    ["tokens, fewer than replicas", { tokensPerMinute: 2 }, 1],
    ["slots, fewer than replicas", { concurrentRequests: 2 }, 1],
  ])("are this replica's share of the limit: %s", async (_kind, limits, share) => {
    const { world, rates } = createWorld(3);
    await rates.renew({ replica: "one", held: [] });
    world.away = true;
    expect(await admittedOf(rates, 200, limits)).toBe(share);
  });

  it("start with this replica's share of what the shared rates had left", async () => {
    const { world, rates, clock } = createWorld(2);
    await rates.renew({ replica: "one", held: [] });
    const limits = { requestsPerMinute: 120, tokensPerMinute: 600 };
    expect(await admittedOf(rates, 100, limits)).toBe(100);
    world.away = true;
    expect(await admittedOf(rates, 100, limits)).toBe(10);
    clock.advance(3000);
    expect(await admittedOf(rates, 100, limits)).toBe(3);
  });

  it("count the failures of the store by their fault", async () => {
    const { world, rates, remote, clock } = createWorld(3);
    world.away = true;
    await admittedOf(rates, 2, { requestsPerMinute: 100 });
    expect([...rates.faults()]).toEqual([["error", 2]]);
    remote.take = async () => {
      throw new RateStoreError("late", { fault: "late" });
    };
    await admittedOf(rates, 9, { requestsPerMinute: 100 });
    // From the fifth on it is not asked, but for the probe.
    expect([...rates.faults()]).toEqual([
      ["error", 2],
      ["late", 3],
    ]);
    // The longest time until the first probe.
    await clock.pass(1_200);
    expect(rates.faults().get("error")).toBe(3);
  });

  it("skip the store after five failures in a row, until a probe succeeds", async () => {
    const { world, rates, clock } = createWorld(3);
    await rates.renew({ replica: "one", held: [] });
    world.away = true;
    world.asked = 0;
    expect(rates.state()).toBe("shared");
    await admittedOf(rates, 100, { requestsPerMinute: 10 });
    expect(world.asked).toBe(5);
    expect(rates.state()).toBe("local");
    await clock.pass(10_000);
    expect(world.asked).toBeGreaterThan(5 + 7);
    expect(world.asked).toBeLessThan(5 + 14);
    world.away = false;
    await clock.pass(1300);
    expect(rates.state()).toBe("shared");
    expect(world.changes).toEqual([
      ["local", 3],
      ["shared", 3],
    ]);
  });

  it("are this replica's share for the accounts of a lost node, while other accounts are still asked", async () => {
    const { world, rates, clock } = createWorld(3);
    await rates.renew({ replica: "one", held: [] });
    world.away = true;
    world.scope = "node";
    const admitted = await admittedOf(rates, 20, { requestsPerMinute: 30 });
    expect(admitted).toBe(10);
    expect(world.asked).toBe(1 + 20);
    expect(rates.state()).toBe("shared");
    expect(rates.localDecisions()).toBe(20);
    await clock.pass(5_000);
    expect(world.changes).toEqual([]);
  });

  it("are not asked of a store that answers later than decisions wait", async () => {
    const { world, rates, clock } = createWorld(3);
    await rates.renew({ replica: "one", held: [] });
    world.away = true;
    await admittedOf(rates, 5, { requestsPerMinute: 10 });
    world.away = false;
    world.answersAfterMs = 600;
    await clock.pass(10_000);
    expect(rates.state()).toBe("local");
    world.answersAfterMs = 400;
    await clock.pass(2_000);
    expect(rates.state()).toBe("shared");
  });

  it("are not this replica's share again in each of several outages in a row", async () => {
    const { world, rates, clock } = createWorld(3);
    await rates.renew({ replica: "one", held: [] });
    let admitted = 0;
    for (let outage = 0; outage < 10; outage++) {
      world.away = true;
      admitted += await admittedOf(rates, 200, { requestsPerMinute: 60 });
      world.away = false;
      await clock.pass(1300);
      expect(rates.state()).toBe("shared");
    }
    // The share of 20 at first and after the first outage, and a third of a request per second.
    expect(admitted).toBeLessThanOrEqual(20 + 20 + 13 / 3);
  });

  it("do not open the circuit breaker when failures are not in a row", async () => {
    const { world, rates } = createWorld();
    for (let index = 0; index < 40; index += 1) {
      world.away = index % 5 !== 0;
      await admittedOf(rates, 1, { requestsPerMinute: 100 });
    }
    expect(rates.state()).toBe("shared");
  });

  it("return to the shared store what was taken there, and to the local share what was taken locally", async () => {
    const { world, rates, remote, clock } = createWorld(2);
    await rates.renew({ replica: "one", held: [] });
    const one = subjectOf("key:1", { concurrentRequests: 2 });
    const [shared, local] = [demandOf([one]), demandOf([one])];
    await rates.take(shared);
    world.away = true;
    for (let index = 0; index < 5; index += 1) await admittedOf(rates, 1, { requestsPerMinute: 100 });
    expect((await rates.take(local)).admitted).toBe(true);
    expect((await rates.take(demandOf([one]))).admitted).toBe(false);
    await rates.release(toRelease(local, 0));
    expect((await rates.take(local)).admitted).toBe(true);
    world.away = false;
    await clock.pass(1300);
    await rates.release(toRelease(shared, 0));
    expect((await remote.take(demandOf([one]))).admitted).toBe(true);
    expect((await remote.take(demandOf([one]))).admitted).toBe(true);
  });

  it("return to a shared store that is there again what was taken there, before the circuit breaker has closed", async () => {
    const { world, rates, remote } = createWorld(2);
    const one = subjectOf("key:1", { concurrentRequests: 1 });
    const shared = demandOf([one]);
    await rates.take(shared);
    world.away = true;
    for (let index = 0; index < 5; index += 1) await admittedOf(rates, 1, { requestsPerMinute: 100 });
    expect(rates.state()).toBe("local");
    world.away = false;
    await rates.release(toRelease(shared, 0));
    expect((await remote.take(demandOf([one]))).admitted).toBe(true);
  });

  it("renew each slot where it was taken", async () => {
    const { world, rates, clock } = createWorld(1);
    const one = subjectOf("key:1", { concurrentRequests: 1 });
    world.away = true;
    const demand = demandOf([one]);
    await rates.take(demand);
    for (let index = 0; index < 6; index += 1) {
      await clock.pass(LEASE_MS / 3);
      await rates.renew({ replica: "one", held: [{ id: demand.id, subject: "key:1", accountId: "acct_1" }] });
    }
    expect((await rates.take(demandOf([one]))).admitted).toBe(false);
  });

  it("divide by the earlier number of replicas until all had time to reconnect", async () => {
    const { world, rates, clock } = createWorld(4);
    await rates.renew({ replica: "one", held: [] });
    world.away = true;
    await admittedOf(rates, 10, { requestsPerMinute: 8 });
    world.away = false;
    world.replicas = 1;
    await clock.pass(1300);
    expect(await rates.renew({ replica: "one", held: [] })).toBe(4);
    await clock.pass(2 * LEASE_MS);
    expect(await rates.renew({ replica: "one", held: [] })).toBe(1);
  });

  it("divide by the joined replicas: a new one counts within two seconds", async () => {
    const { world, rates, clock } = createWorld(1);
    await rates.join(1_000);
    expect(rates.replicas()).toBe(1);
    world.replicas = 3;
    await clock.pass(2_000);
    expect(rates.replicas()).toBe(3);
    world.away = true;
    expect(await admittedOf(rates, 200, { requestsPerMinute: 90 })).toBe(30);
    await rates.close();
  });

  it("divide by no fewer after the shared store was emptied or a replica is late", async () => {
    const { world, rates, clock } = createWorld(3);
    await rates.join(1_000);
    world.replicas = 1;
    await clock.pass(2 * LEASE_MS - 3_000);
    expect(rates.replicas()).toBe(3);
    await clock.pass(6_000);
    expect(rates.replicas()).toBe(1);
    await rates.close();
  });

  it("divide by the replicas counted elsewhere if the store is unavailable from the start", async () => {
    const { world, remote, clock } = createWorld(3);
    world.away = true;
    const rates = createSharedRates({ remote, clock, burstMs: BURST_MS, replica: "one", census: async () => 3 });
    const joined = rates.join(1_000);
    await clock.pass(1_500);
    await joined;
    expect(await admittedOf(rates, 200, { requestsPerMinute: 90 })).toBe(30);
    await rates.close();
  });

  it("divide by those that have started meanwhile, when several start while the store is unavailable", async () => {
    const { world, remote, clock } = createWorld(3);
    world.away = true;
    let others = 1;
    const rates = createSharedRates({ remote, clock, burstMs: BURST_MS, replica: "one", census: async () => others });
    const joined = rates.join(1_000);
    await clock.pass(500);
    others = 3;
    await clock.pass(1_000);
    await joined;
    expect(await admittedOf(rates, 200, { requestsPerMinute: 90 })).toBe(30);
    await rates.close();
  });

  it("are awaited at the start of a process, and used as soon as the store is reachable", async () => {
    const { world, rates, clock } = createWorld(3);
    world.away = true;
    let joined = false;
    void rates.join(5_000).then(() => (joined = true));
    await clock.pass(2_000);
    expect(joined).toBe(false);
    world.away = false;
    await clock.pass(400);
    expect([joined, rates.replicas()]).toEqual([true, 3]);
    await rates.close();
  });

  it("are not probed after close", async () => {
    const { world, rates, clock } = createWorld();
    world.away = true;
    await admittedOf(rates, 10, { requestsPerMinute: 8 });
    await rates.close();
    expect(clock.pending).toBe(0);
  });
});

import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { slotOf } from "../../src/limits/redis-slots.ts";
import { createDatabase } from "../support/postgres.ts";
import { launchRedisCluster } from "../support/redis-cluster.ts";
import { launchRedisSentinel } from "../support/redis-sentinel.ts";
import { countOutcomes, latencies } from "./support/traffic.ts";
import { BURST, SCARCE_RPM, startWatchedFleet, type WatchedFleet } from "./support/watched-fleet.ts";

/* What callers see of a failover of Redis under load. */

const REPLICAS = 2;
const FAILOVER_MS = 40_000;

async function start(redisUrl: string, env: Record<string, string>): Promise<WatchedFleet> {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const fleet = await startWatchedFleet({ replicas: REPLICAS, databaseUrl, redisUrl, program: { env } });
  onTestFinished(() => fleet.close());
  await delay(2_000);
  return fleet;
}

/** Local decisions of all replicas, which stop when they count together. */
async function localDecisions({ deployment }: WatchedFleet): Promise<number> {
  const texts = await Promise.all(
    deployment.products.map(async ({ operationsUrl }) => (await fetch(`${operationsUrl}/metrics`)).text()),
  );
  const counts = texts.map((text) => Number(/^parley_rates_local_decisions_total (\d+)$/m.exec(text)?.[1]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Waits until no request of a second is decided locally. */
async function expectCountedTogether(fleet: WatchedFleet): Promise<void> {
  const untilMs = performance.now() + FAILOVER_MS;
  for (let before = -1; ;) {
    expect(performance.now(), "the time until limits are counted together").toBeLessThan(untilMs);
    const now = await localDecisions(fleet);
    if (now === before) return;
    before = now;
    await delay(1_000);
  }
}

/** No lost ledger entry, no false 401, no failure, no open limit. */
async function expectPromises(name: string, fleet: WatchedFleet): Promise<void> {
  await fleet.traffic.stop();
  const seconds = (performance.now() - fleet.traffic.seen[0]!.beganMs) / 1_000;
  const of = (caller: string) => fleet.began(caller, { sinceMs: 0, untilMs: Infinity });
  const outcomes = Object.fromEntries(
    ["plain", "budget", "scarce", "unknown"].map((caller) => [caller, countOutcomes(of(caller))]),
  );
  const lost = await fleet.findLost();
  const local = await localDecisions(fleet);
  console.log(name, { seconds: Math.round(seconds), ...outcomes, lost: lost.length, local, ...latencies(of("plain")) });
  expect(lost).toEqual([]);
  expect(Object.keys(outcomes["plain"]!)).toEqual(["200"]);
  expect(Object.keys(outcomes["budget"]!)).toEqual(["200"]);
  expect(Object.keys(outcomes["unknown"]!)).toEqual(["401"]);
  expect(Object.keys(outcomes["scarce"]!).toSorted()).toEqual(["200", "429"]);
  // The burst, once more as shares, the refill of that time, and a request of each replica at both ends of the gap.
  const most = 2 * BURST + Math.ceil((seconds * SCARCE_RPM) / 60) + 2 * REPLICAS;
  expect(outcomes["scarce"]![200]).toBeLessThanOrEqual(most);
}

it("Sentinels replace a killed master: no entry is lost, no key refused, no limit open", async () => {
  const redis = await launchRedisSentinel();
  onTestFinished(() => redis.stop());
  const { master, password } = redis.place;
  const fleet = await start(redis.url, {
    PARLEY_REDIS_MODE: "sentinel",
    PARLEY_REDIS_SENTINEL_MASTER: master,
    PARLEY_REDIS_SENTINEL_PASSWORD: password,
  });
  const victim = await redis.master();
  await victim.kill();
  await expect.poll(async () => (await redis.master()) !== victim, { timeout: FAILOVER_MS }).toBe(true);
  await expectCountedTogether(fleet);
  await delay(1_000);
  await expectPromises("Sentinel", fleet);
  expect((await fleet.readiness()).map(({ rates }) => rates.alone)).toEqual([false, false]);
  // The first master, and the second.
  expect(fleet.countInLogs("Sentinels name this master of Redis")).toEqual([2, 2]);
}, 120_000);

it("a cluster moves the slot of an account, and loses its master: no entry is lost, no key refused, no limit open", async () => {
  // With the default each lost master is a loss of the whole cluster until its replica is promoted.
  const cluster = await launchRedisCluster(["--cluster-require-full-coverage", "no"]);
  onTestFinished(() => cluster.stop());
  const fleet = await start(cluster.url, { PARLEY_REDIS_MODE: "cluster" });
  const slot = slotOf(`{${fleet.accountId}}`);
  const from = await cluster.masterOf(slot);
  const owners = await Promise.all([0, 8_000, 16_000].map((each) => cluster.masterOf(each)));
  const to = owners.find((master) => master !== from)!;
  await cluster.moveSlot(slot, to, () => delay(100));
  await expectCountedTogether(fleet);
  await to.kill();
  await expect
    .poll(async () => (await cluster.masterOf(slot).catch(() => to)) !== to, { timeout: FAILOVER_MS, interval: 500 })
    .toBe(true);
  await expectCountedTogether(fleet);
  await delay(1_000);
  await expectPromises("Cluster", fleet);
  for (const count of fleet.countInLogs(
    "this node of the Redis Cluster is unavailable; this replica allows its share to the accounts on it",
  ))
    expect(count).toBe(1);
}, 180_000);

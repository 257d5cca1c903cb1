import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { type RateDecision, RateStoreError, type RateSubject } from "../../src/limits/rates.ts";
import { RedisCluster } from "../../src/limits/redis-cluster.ts";
import { openRedisRates, type RedisEvent, type RedisRates } from "../../src/limits/redis.ts";
import { slotOf } from "../../src/limits/redis-slots.ts";
import { createSharedRates, type RatesState } from "../../src/limits/shared-rates.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { describeRateStore } from "../limits/rate-store-contract.ts";
import { startRedis } from "../support/redis.ts";
import { openClusterRates } from "./support/cluster-rates.ts";
import { launchRedisCluster, type RedisClusterServers } from "../support/redis-cluster.ts";

let cluster: RedisClusterServers;
beforeAll(async () => {
  // By default one silent master makes all of them refuse commands.
  cluster = await launchRedisCluster(["--cluster-require-full-coverage", "no"]);
});
beforeEach(() => cluster.clear());
afterAll(() => cluster?.stop());

const open = (options?: Parameters<typeof openClusterRates>[1]): Promise<RedisRates> =>
  // One node is enough to find the others.
  openClusterRates(cluster.url.replace(/@.*,/, "@127.0.0.1:1,"), options);

/** The subject of an account whose slot is at this master. */
async function subjectAt(port: number, limits: Partial<RateSubject>): Promise<RateSubject> {
  for (let number = 0; ; number += 1) {
    const accountId = `acct_${port}_${number}`;
    if ((await cluster.masterOf(slotOf(`{${accountId}}`))).port === port)
      return subjectOf(`key:${accountId}`, { accountId, ...limits });
  }
}

const take = (rates: Pick<RedisRates, "take">, subject: RateSubject): Promise<RateDecision | RateStoreError> =>
  rates.take(demandOf([subject])).catch((reason: unknown) => {
    if (reason instanceof RateStoreError) return reason;
    throw reason;
  });

describeRateStore("a Redis Cluster", async () => ({ stores: await Promise.all([open(), open(), open()]) }));

describe("rates in a Redis Cluster", () => {
  it("have the slots that the servers compute", async () => {
    const keys = [
      "",
      "a",
      "{}a",
      "{}{a}",
      "a{b}c",
      "{a",
      "parley:{acct_1}:buckets:key:1",
      "parley:replicas",
      "{ü}é",
      "x{{y}}",
    ];
    expect(keys.map(slotOf)).toEqual(await Promise.all(keys.map((key) => cluster.slotOf(key))));
  });

  it("are at all masters, and the replicas count each other", async () => {
    const [one, two] = await Promise.all([open(), open()]);
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        one.take(demandOf([subjectOf(`key:${index}`, { accountId: `acct_${index}`, requestsPerMinute: 5 })])),
      ),
    );
    const sizes = await Promise.all(cluster.servers.map(async (server) => Number((await server.ask(["DBSIZE"]))[0])));
    expect(sizes.filter((size) => size > 0).length).toBeGreaterThanOrEqual(3);
    await one.renew({ replica: "one", held: [] });
    expect(await two.renew({ replica: "two", held: [] })).toBe(2);
    await one.exchange("one", { down: ["a/m"], up: [] });
    expect(await two.exchange("two", { down: [], up: [] })).toEqual([{ down: ["a/m"], up: [] }]);
  });

  it("stay exact while slots move between masters under load", async () => {
    const stores = await Promise.all([open(), open(), open()]);
    const limit = 40;
    const subjects = await Promise.all(
      ["a", "b"].map(async (name) => {
        const accountId = `acct_moving_${name}`;
        return {
          slot: await cluster.slotOf(`{${accountId}}`),
          subject: subjectOf(`key:${name}`, { accountId, requestsPerMinute: limit, concurrentRequests: 1000 }),
        };
      }),
    );
    const state = { isOver: false };
    const seen: (RateDecision | RateStoreError)[][] = subjects.map(() => []);
    const beganMs = performance.now();
    const load = stores.flatMap((rates) =>
      subjects.map(async ({ subject }, index) => {
        while (!state.isOver) {
          seen[index]!.push(await take(rates, subject));
          await delay(20);
        }
      }),
    );
    for (let round = 0; round < 3; round += 1) {
      for (const { slot } of subjects) {
        const from = await cluster.masterOf(slot);
        const masters = new Set(await Promise.all([0, 8_000, 16_000].map((each) => cluster.masterOf(each))));
        const to = [...masters].find((master) => master !== from)!;
        await cluster.moveSlot(slot, to, () => delay(50));
      }
      await delay(300);
    }
    state.isOver = true;
    await Promise.all(load);
    const refilled = Math.ceil(((performance.now() - beganMs) / 60_000) * limit);
    for (const decisions of seen) {
      const admitted = decisions.filter((one) => !(one instanceof RateStoreError) && one.admitted).length;
      const failed = decisions.filter((one) => one instanceof RateStoreError);
      expect(admitted).toBeGreaterThanOrEqual(limit);
      expect(admitted).toBeLessThanOrEqual(limit + refilled);
      // While the keys of one account are at two nodes, for as long as the test pauses.
      expect(failed.every((error) => error.scope === "node")).toBe(true);
      expect(failed.length).toBeLessThan(decisions.length / 4);
    }
    // Afterwards no command is redirected.
    for (const { subject } of subjects) expect(await take(stores[0], subject)).not.toBeInstanceOf(RateStoreError);
  }, 120_000);

  it.each(["killed", "hung"] as const)(
    "of a master that is %s are counted by its promoted replica; other accounts notice nothing",
    async (how) => {
      const events: RedisEvent[] = [];
      const remote = await open({ events, commandMs: 50 });
      const changes: RatesState[] = [];
      const rates = createSharedRates({
        remote,
        clock: systemClock,
        burstMs: 60_000,
        replica: "one",
        onChange: (state) => void changes.push(state),
      });
      onTestFinished(() => rates.close());
      const victim = await cluster.masterOf(slotOf("{acct_1}"));
      const others = new Set(await Promise.all([0, 8_000, 16_000].map((each) => cluster.masterOf(each))));
      const healthy = [...others].find((master) => master !== victim)!;
      const limits = { requestsPerMinute: 20 };
      const there = await subjectAt(victim.port, limits);
      const elsewhere = await subjectAt(healthy.port, { requestsPerMinute: 1_000_000 });
      await take(rates, there);
      await delay(200);
      const replica = await cluster.replicaOf(victim);
      const slot = slotOf(`{${there.accountId}}`);
      const beganMs = performance.now();
      if (how === "killed") await victim.kill();
      else victim.freeze();
      let admitted = 1;
      let slowMs = 0;
      const promoted = { isOne: false };
      const watch = async (): Promise<void> => {
        // Without the votes of the others, which may take a while: they are not what is tested.
        if (how === "hung") await delay(3_000).then(() => replica.ask(["CLUSTER", "FAILOVER", "TAKEOVER"]));
        while ((await cluster.masterOf(slot).catch(() => victim)) === victim) await delay(500);
        promoted.isOne = true;
      };
      void watch();
      for (let isBack = false; !isBack;) {
        expect(performance.now() - beganMs).toBeLessThan(60_000);
        const startedMs = performance.now();
        const local = rates.localDecisions();
        const decision = await take(rates, there);
        if (decision instanceof RateStoreError) throw decision;
        if (decision.admitted) admitted += 1;
        if (performance.now() - startedMs > 40) slowMs += performance.now() - startedMs;
        isBack = promoted.isOne && rates.localDecisions() === local;
        expect(await take(remote, elsewhere)).toMatchObject({ admitted: true });
        await delay(20);
      }
      const backMs = performance.now() - beganMs;
      for (let count = 0; count < 60; count += 1) {
        const decision = await take(rates, there);
        if (!(decision instanceof RateStoreError) && decision.admitted) admitted += 1;
      }
      console.log({
        how,
        admitted,
        slowMs: Math.round(slowMs),
        backMs: Math.round(backMs),
        local: rates.localDecisions(),
      });
      // The limit, this process's share (all of it), and the refill.
      const refilled = Math.ceil(((performance.now() - beganMs) / 60_000) * 2 * limits.requestsPerMinute);
      expect(admitted).toBeLessThanOrEqual(2 * limits.requestsPerMinute + refilled);
      expect(changes).toEqual([]);
      expect(events).toContainEqual({ what: "node", address: `127.0.0.1:${victim.port}`, state: "away" });
      // Five requests wait for a silent node, and others now and then, when it is tried again.
      expect(slowMs).toBeLessThan(3_000);
      if (how === "killed") await victim.start();
      else victim.thaw();
      await expect.poll(async () => (await victim.ask(["ROLE"]).catch(() => []))[0], { timeout: 20_000 }).toBe("slave");
    },
    120_000,
  );

  it("open no connection once they are closed, also in the middle of a question for the owners", async () => {
    const servers = [await startRedis(), await startRedis()];
    const connections = async (): Promise<number> => {
      const lists = await Promise.all(servers.map((server) => server.ask(["CLIENT", "LIST"])));
      return lists.flat().filter((line) => line.includes("id=") && !line.includes("cmd=client")).length;
    };
    const nodes = new RedisCluster({ urls: servers.map(({ url }) => new URL(url)), clock: systemClock });
    await expect.poll(connections).toBe(2);
    await delay(100);
    const settled = nodes.settled(1);
    nodes.close();
    await settled;
    await delay(100);
    expect(await connections()).toBe(0);
  });

  it("that is not one is refused, and so is a node without the mode", async () => {
    const single = await startRedis();
    const to = (url: string, mode: "cluster" | "server") =>
      openRedisRates({ url, place: { mode }, clock: systemClock, burstMs: 60_000 });
    await expect(to(single.url, "cluster")).rejects.toThrow(
      "redis.url names a server that is not part of a cluster, and redis.mode is cluster: set it to server.",
    );
    await expect(to(cluster.url.replace(/,.*/, ""), "server")).rejects.toThrow(
      "redis.url names a node of a Redis Cluster, and redis.mode is server: set it to cluster.",
    );
  });
});

import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { RateStoreError } from "../../src/limits/rates.ts";
import { openRedisRates, type RedisEvent, type RedisPlace, type RedisRates } from "../../src/limits/redis.ts";
import { createSharedRates } from "../../src/limits/shared-rates.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { launchRedisSentinel, type RedisSentinelServers } from "../support/redis-sentinel.ts";

/** Time from the promotion until replicas use the new master: they ask each second; the rest is for a busy machine. */
const FOUND_MS = 5_000;

let servers: RedisSentinelServers;
beforeAll(async () => {
  servers = await launchRedisSentinel();
});
afterAll(() => servers?.stop());

async function open(given: { readonly place?: RedisPlace; readonly events?: RedisEvent[] } = {}): Promise<RedisRates> {
  const { place = servers.place, events = [] } = given;
  const onEvent = (event: RedisEvent): void => void events.push(event);
  const rates = await openRedisRates({ url: servers.url, place, clock: systemClock, burstMs: 60_000, onEvent });
  onTestFinished(() => rates.close());
  return rates;
}

describe("rates in the master that Sentinels name", () => {
  it.each(["killed", "hung", "demoted"] as const)(
    "are counted by the new one after the old one was %s, and never open meanwhile",
    async (how) => {
      const events: RedisEvent[] = [];
      const limit = 30;
      const fleet = await Promise.all(
        ["one", "two", "three"].map(async (replica) => {
          const remote = await open({ events });
          const rates = createSharedRates({ remote, clock: systemClock, burstMs: 60_000, replica });
          onTestFinished(() => rates.close());
          await rates.join(5_000);
          return rates;
        }),
      );
      for (const [index, rates] of fleet.entries())
        await rates.renew({ replica: ["one", "two", "three"][index]!, held: [] });
      const subject = subjectOf(`key:${how}`, { requestsPerMinute: limit });
      const victim = await servers.master();
      const other = servers.servers.find((server) => server !== victim)!;
      const beganMs = performance.now();
      let admitted = 0;
      const ask = async (): Promise<void> => {
        for (const rates of fleet) if ((await rates.take(demandOf([subject]))).admitted) admitted += 1;
      };
      for (let count = 0; count < 5; count += 1) await ask();
      if (how === "killed") await victim.kill();
      else if (how === "hung") victim.freeze();
      else await servers.sentinels[0]!.ask(["SENTINEL", "FAILOVER", "parley-rates"]);
      const promoted = { atMs: Infinity };
      const watch = async (): Promise<void> => {
        while ((await servers.master().catch(() => victim)) === victim) await delay(200);
        promoted.atMs = performance.now();
      };
      void watch();
      const isBack = (): boolean =>
        events.filter(({ address }) => address.endsWith(`:${other.port}`)).length === fleet.length &&
        fleet.every((rates) => rates.state() === "shared");
      while (!isBack()) {
        expect(performance.now() - Math.min(promoted.atMs, beganMs + 40_000)).toBeLessThan(FOUND_MS);
        await ask();
        await delay(20);
      }
      const foundMs = performance.now() - promoted.atMs;
      for (let count = 0; count < 2 * limit; count += 1) await ask();
      console.log({ how, admitted, foundMs: Math.round(foundMs), lastedMs: Math.round(performance.now() - beganMs) });
      // The limit; the shares of all replicas, once, and what the replica of Redis had not received; the refill of both.
      const refilled = Math.ceil(((performance.now() - beganMs) / 60_000) * 2 * limit);
      expect(admitted).toBeLessThanOrEqual(2 * limit + refilled);
      // Counted together again.
      const exact = subjectOf(`key:after:${how}`, { requestsPerMinute: limit });
      const askedMs = performance.now();
      const decisions = await Promise.all(
        fleet.flatMap((rates) => Array.from({ length: limit }, () => rates.take(demandOf([exact])))),
      );
      const late = Math.ceil(((performance.now() - askedMs) / 60_000) * limit);
      expect(decisions.filter((one) => one.admitted).length).toBeLessThanOrEqual(limit + late);
      if (how === "killed") await victim.start();
      else if (how === "hung") victim.thaw();
      await expect.poll(async () => (await victim.ask(["ROLE"]).catch(() => []))[0], { timeout: 30_000 }).toBe("slave");
      await expect
        .poll(async () => (await victim.ask(["INFO", "replication"])).join(), { timeout: 30_000 })
        .toContain("master_link_status:up");
    },
    120_000,
  );

  it("need a master of this name and the password of the Sentinels, and say so without it", async () => {
    const causeOf = async (place: RedisPlace): Promise<string> => {
      const rates = await open({ place });
      const error = await rates
        .take(demandOf([subjectOf("key:1", { requestsPerMinute: 1 })]))
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(RateStoreError);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("-secret");
      return (error as RateStoreError).message;
    };
    expect(await causeOf({ ...servers.place, master: "other" })).toBe(
      'There is no master of Redis: the Sentinels know none with the name "other" (redis.sentinel.master).',
    );
    expect(await causeOf({ ...servers.place, password: "wrong-secret" })).toContain("WRONGPASS");
  });

  it("are not used at a Sentinel that is named as a server", async () => {
    const [, port] = /:(\d+)$/.exec(servers.url)!;
    const url = `redis://:sentinel-secret@127.0.0.1:${port}`;
    await expect(openRedisRates({ url, clock: systemClock, burstMs: 60_000 })).rejects.toThrow(
      "redis.url names a Sentinel, and redis.mode is server: set it to sentinel.",
    );
  });
});

import { beforeAll, afterAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { openRedisRates, type RedisPlace, type RedisRates } from "../../src/limits/redis.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { describeRateStore } from "../limits/rate-store-contract.ts";
import { launchRedis, type RedisServer, startRedis } from "../support/redis.ts";
import { launchRedisCluster, type RedisClusterServers } from "../support/redis-cluster.ts";
import { launchRedisSentinel } from "../support/redis-sentinel.ts";
import { openClusterRates } from "./support/cluster-rates.ts";
import { useProgram } from "./support/programs.ts";

const valkey = useProgram("valkey-server");

async function open(url: string, place: RedisPlace = { mode: "server" }): Promise<RedisRates> {
  const rates = await openRedisRates({ url, place, clock: systemClock, burstMs: 60_000, commandMs: 20_000 });
  onTestFinished(() => rates.close());
  return rates;
}

describe("one server of Valkey", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await launchRedis([], { program: valkey() });
  });
  beforeEach(() => server.ask(["FLUSHALL"]));
  afterAll(() => server?.stop());

  it("is Valkey", async () => {
    expect((await server.ask(["INFO", "server"])).join("\n")).toMatch(/server_name:valkey/);
  });

  describeRateStore("Valkey", async () => ({ stores: await Promise.all([1, 2, 3].map(() => open(server.url))) }));
});

describe("a cluster of Valkey", () => {
  let cluster: RedisClusterServers;
  beforeAll(async () => {
    cluster = await launchRedisCluster([], { program: valkey() });
  });
  beforeEach(() => cluster.clear());
  afterAll(() => cluster?.stop());

  describeRateStore("a cluster of Valkey", async () => ({
    stores: await Promise.all([1, 2, 3].map(() => openClusterRates(cluster.url))),
  }));

  it("is recognised", async () => {
    await expect(open(cluster.url.replace(/,.*/, ""))).rejects.toThrow("set it to cluster");
    const single = await startRedis([], { program: valkey() });
    await expect(open(single.url, { mode: "cluster" })).rejects.toThrow("set it to server");
  });
});

it("Sentinels of Valkey name the new master after a failover", async () => {
  const servers = await launchRedisSentinel({ program: valkey() });
  onTestFinished(() => servers.stop());
  const rates = await open(servers.url, servers.place);
  const take = () => rates.take(demandOf([subjectOf("key:1", { requestsPerMinute: 1000 })]));
  expect(await take()).toMatchObject({ admitted: true });
  const victim = await servers.master();
  await victim.kill();
  await expect
    .poll(() => take().catch(() => undefined), { timeout: 30_000, interval: 100 })
    .toMatchObject({ admitted: true });
  expect(await servers.master()).not.toBe(victim);
}, 90_000);

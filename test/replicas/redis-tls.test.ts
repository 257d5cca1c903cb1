import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { openRedisRates, type RedisEvent, type RedisPlace, type RedisRates } from "../../src/limits/redis.ts";
import { slotOf } from "../../src/limits/redis-slots.ts";
import { type TlsFiles, WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { CertificateAuthority, makeCertificateFolder } from "../support/certificates.ts";
import type { RedisTlsFiles } from "../support/redis.ts";
import { launchRedisCluster, type RedisClusterServers } from "../support/redis-cluster.ts";
import { launchRedisSentinel, type RedisSentinelServers } from "../support/redis-sentinel.ts";

/** Time of a promotion with its discovery, and of commands, on a busy machine. */
const PATIENT_MS = 40_000;
const TEST_MS = 120_000;

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
afterAll(() => folder.remove());
const caFile = folder.write("ca.pem", authority.cert);
const foreignCa = folder.write("foreign.pem", new CertificateAuthority("foreign").cert);
const toFiles = ({ cert_file: certFile, key_file: keyFile }: ReturnType<typeof folder.writePair>) => ({
  certFile,
  keyFile,
});
/** For a name only, so that a connection to an address fails. */
const serverFiles: RedisTlsFiles = {
  ...toFiles(folder.writePair("server", authority.issue({ names: ["DNS:localhost"] }))),
  caFile,
};
const own = toFiles(folder.writePair("client", authority.issue({ names: ["DNS:parley.example.org"] })));
const trusted: TlsFiles = { caFile, ...own };

interface Opened {
  readonly files?: TlsFiles;
  readonly events?: RedisEvent[];
}

async function open(
  url: string,
  place: RedisPlace,
  { files = trusted, events = [] }: Opened = {},
): Promise<RedisRates> {
  const ignored = { loaded: () => undefined, refused: () => undefined, expired: () => undefined };
  const tls = await WatchedTlsFiles.open(files, { everyMs: 20, ...ignored });
  const onEvent = (event: RedisEvent): void => void events.push(event);
  const times = { commandMs: PATIENT_MS, clock: systemClock, burstMs: 60_000 };
  const rates = await openRedisRates({ url, place, tls, onEvent, ...times });
  onTestFinished(() => rates.close());
  return rates;
}

/** Takes from the rates of an account; returns "taken", or the reason. */
const take = (rates: RedisRates, accountId = "acct_1"): Promise<string> =>
  rates.take(demandOf([subjectOf("key:1", { accountId, requestsPerMinute: 1_000_000 })])).then(
    () => "taken",
    (error: Error) => error.message,
  );

/** Resolves when the rates can be taken. */
const untilTaken = (rates: RedisRates, accountId?: string): Promise<void> =>
  expect.poll(() => take(rates, accountId), { timeout: PATIENT_MS }).toBe("taken");

describe("Redis Sentinel with TLS", () => {
  let servers: RedisSentinelServers;
  beforeAll(async () => {
    servers = await launchRedisSentinel({ tls: serverFiles });
  }, TEST_MS);
  afterAll(() => servers?.stop());

  it(
    "is verified by its names, shown our certificate, and followed to the new master",
    async () => {
      const events: RedisEvent[] = [];
      const rates = await open(servers.url, servers.place, { events });
      await untilTaken(rates);
      const before = await servers.master();
      expect(events).toEqual([{ what: "master", address: `localhost:${before.port}` }]);
      await servers.sentinels[0]!.ask(["SENTINEL", "FAILOVER", servers.place.master]);
      const after = servers.servers.find((server) => server !== before)!;
      const found = { what: "master", address: `localhost:${after.port}` };
      await expect.poll(() => events, { timeout: PATIENT_MS }).toContainEqual(found);
      await untilTaken(rates);
    },
    TEST_MS,
  );

  it.each<[string, TlsFiles]>([
    ["another authority", { caFile: foreignCa, ...own }],
    ["no certificate", { caFile }],
  ])("is not used with %s", async (_, files) => {
    const rates = await open(servers.url, servers.place, { files });
    expect(await take(rates)).toMatch(/There is no master of Redis: a Sentinel did not name one: .*not connected/);
  });

  it("is not used by its address, which its certificate does not have", async () => {
    const rates = await open(servers.url.replaceAll("localhost", "127.0.0.1"), servers.place);
    expect(await take(rates)).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
  });
});

describe("Redis Cluster with TLS", () => {
  let cluster: RedisClusterServers;
  beforeAll(async () => {
    cluster = await launchRedisCluster(["--cluster-require-full-coverage", "no"], { tls: serverFiles });
  }, TEST_MS);
  afterAll(() => cluster?.stop());

  it(
    "is verified by its names at all masters, and followed to moved slots and a promoted replica",
    async () => {
      // One node is enough to find the others.
      const rates = await open(cluster.url.replace(/,.*/, ""), { mode: "cluster" });
      for (let index = 0; index < 30; index += 1) await untilTaken(rates, `acct_${index}`);
      const sizes = await Promise.all(cluster.servers.map(async (server) => Number((await server.ask(["DBSIZE"]))[0])));
      expect(sizes.filter((size) => size > 0).length).toBeGreaterThanOrEqual(3);

      const slot = slotOf("{acct_1}");
      const before = await cluster.masterOf(slot);
      const masters = await Promise.all([0, 8_000, 16_000].map((each) => cluster.masterOf(each)));
      const to = masters.find((master) => master !== before)!;
      await cluster.moveSlot(slot, to, () => Promise.resolve());
      await untilTaken(rates);

      const replica = await cluster.replicaOf(to);
      await replica.ask(["CLUSTER", "FAILOVER"]);
      await expect.poll(() => cluster.masterOf(slot), { timeout: PATIENT_MS }).toBe(replica);
      await to.kill();
      await untilTaken(rates);
    },
    TEST_MS,
  );

  it("is not used with another authority", async () => {
    const rates = await open(cluster.url, { mode: "cluster" }, { files: { caFile: foreignCa, ...own } });
    expect(await take(rates)).not.toBe("taken");
  });
});

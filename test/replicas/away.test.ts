import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { revokeKey } from "../../src/access/keys.ts";
import { monthOf, systemClock } from "../../src/core/clock.ts";
import { createDatabase, type PostgresServer, queryPostgres, startPostgres } from "../support/postgres.ts";
import { startProcess } from "../support/processes.ts";
import { startRedis } from "../support/redis.ts";
import { MODEL } from "./support/deployment.ts";
import { countOutcomes, latencies, type Seen, spread } from "./support/traffic.ts";
import { BURST, SCARCE_RPM, startWatchedFleet, type WatchedFleet, type Window } from "./support/watched-fleet.ts";
import { postChat } from "../support/post-json.ts";

const REPLICAS = 3;
/** Enough connections for all replicas, few enough for the test to occupy. */
const MAX_CONNECTIONS = 60;
const BEFORE_MS = 3_000;
const AFTER_MS = 2_000;
/** Time until everything works as before; the rest is for a busy machine. */
const BACK_MS = 5_000;
const SLACK_MS = 2_000;
/** Maximum latency of requests in flight when the fault begins: key look-up, rates and ledger. */
const FIRST_WAIT_MS = 6_000;
/** Maximum latency once the fault is known. Without a fault it is some ten milliseconds. */
const KNOWN_WAIT_MS = 500;
/** The time limit for Redis is 50 ms. */
const REDIS_WAIT_MS = 1_000;
const MAX_GROWTH_BYTES = 150 * 2 ** 20;
/** How long another process holds SQLite's write lock, and the maximum latency of `/healthz` meanwhile. */
const LOCK_MS = 2_000;
const HEALTH_MS = 250;
const HEALTH_EVERY_MS = 5;
const HOLD_LOCK = join(import.meta.dirname, "../store/hold-lock.ts");

const CALLERS = ["plain", "budget", "scarce", "unknown"] as const;
const EVER: Window = { sinceMs: 0, untilMs: Infinity };

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ maxConnections: MAX_CONNECTIONS });
});
afterAll(() => server?.stop());

/** A fault with its start and end. */
interface Fault {
  readonly name: string;
  readonly lastsMs: number;
  readonly begin: (databaseUrl: string) => Promise<void>;
  readonly end: () => Promise<void>;
}

const idleClients: pg.Client[] = [];

const DATABASE_FAULTS: readonly Fault[] = [
  { name: "hung", lastsMs: 8_000, begin: () => server.pause(), end: () => server.resume() },
  { name: "stopped", lastsMs: 6_000, begin: () => server.halt(), end: () => server.start() },
  {
    name: "out of connections",
    lastsMs: 6_000,
    begin: takeAllConnections,
    async end() {
      await Promise.all(idleClients.splice(0).map((client) => client.end()));
    },
  },
];

/** Maximum rounds in which replicas may take a connection before the test does. */
const MAX_ROUNDS = 50;

/** Terminates the replicas' connections, and occupies the slots before they reconnect. */
async function takeAllConnections(databaseUrl: string): Promise<void> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const own = new pg.Client(server.url);
  await own.connect();
  idleClients.push(own);
  const takeFreeSlots = async (): Promise<void> => {
    const client = new pg.Client(server.url);
    client.on("error", () => undefined);
    try {
      await client.connect();
    } catch {
      return;
    }
    idleClients.push(client);
    return takeFreeSlots();
  };
  let left = 1;
  // A connection that is terminated may free its slot after the slots were taken: the last round has to find none for the second time.
  for (let round = 0, without = 0; without < 2 && round < MAX_ROUNDS; round++) {
    await Promise.all(Array.from({ length: 10 }, takeFreeSlots));
    const { rows } = await own.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
    left = rows.length;
    without = left === 0 ? without + 1 : 0;
  }
  expect(left, "connections that the replicas have got").toBe(0);
}

/** Measurements by phase of a scenario. */
interface Phases {
  readonly before: Window;
  readonly away: Window;
  /** From the end of the fault until every replica reports normal operation. */
  readonly returning: Window;
  readonly after: Window;
  readonly grownBytes: number;
}

interface Scenario {
  readonly begin: () => Promise<void>;
  readonly lastsMs: number;
  /** Runs during the fault, once every replica has detected it. */
  readonly whileAway: () => Promise<void>;
  readonly end: () => Promise<void>;
  readonly isBack: () => Promise<boolean>;
}

async function live(fleet: WatchedFleet, { begin, lastsMs, whileAway, end, isBack }: Scenario): Promise<Phases> {
  const startedAtMs = performance.now();
  await delay(BEFORE_MS);
  const rssBytes = fleet.rssBytes();
  const beginsAtMs = performance.now();
  let beganAtMs: number;
  let endsAtMs: number;
  try {
    await begin();
    beganAtMs = performance.now();
    await delay(lastsMs / 2);
    await whileAway();
    await delay(Math.max(beganAtMs + lastsMs - performance.now(), 0));
    endsAtMs = performance.now();
  } finally {
    await end();
  }
  const endedAtMs = performance.now();
  await expect.poll(isBack, { timeout: BACK_MS + SLACK_MS }).toBe(true);
  const backAtMs = performance.now();
  await delay(AFTER_MS);
  const grownBytes = fleet.rssBytes() - rssBytes;
  await fleet.traffic.stop();
  return {
    before: { sinceMs: startedAtMs, untilMs: beginsAtMs },
    away: { sinceMs: beganAtMs, untilMs: endsAtMs },
    returning: { sinceMs: endedAtMs, untilMs: backAtMs },
    after: { sinceMs: backAtMs, untilMs: Infinity },
    grownBytes,
  };
}

const outcomesOf = (seen: readonly Seen[]): string[] => Object.keys(countOutcomes(seen)).toSorted();

const admittedOf = (seen: readonly Seen[]): number => seen.filter(({ outcome }) => outcome === 200).length;

const secondsOf = ({ sinceMs, untilMs }: Window): number => (untilMs - sinceMs) / 1_000;

function toText(seen: readonly Seen[]): string {
  const { p50, p99, max } = latencies(seen);
  return [p50, p99, max].map((ms) => ms.toFixed(0)).join("/");
}

/** Checks the invariants of every fault, and prints the figures. */
async function expectPromises(name: string, fleet: WatchedFleet, phases: Phases): Promise<void> {
  const { before, away, returning, after } = phases;
  const settled: Window = { ...away, sinceMs: away.sinceMs + (away.untilMs - away.sinceMs) / 2 };
  const first: Window = { sinceMs: before.untilMs - 500, untilMs: settled.sinceMs };
  const lost = await fleet.findLost();
  const plain = (window: Window): Seen[] => fleet.began("plain", window);
  const known = ["plain", "budget", "scarce"].flatMap((caller) => fleet.began(caller, EVER));
  const falseRefusals = known.filter(({ outcome }) => outcome === 401).length;
  console.log(
    [
      name,
      `latency of the plain key (p50/p99/max ms): before ${toText(plain(before))}, first ${toText(plain(first))},` +
        ` while away ${toText(plain(settled))}, returning ${toText(plain(returning))}, after ${toText(plain(after))}`,
      ...CALLERS.map(
        (caller) =>
          `${caller} while away ${JSON.stringify(countOutcomes(fleet.within(caller, away)))} in ${toText(fleet.within(caller, away))} ms,` +
          ` ever ${JSON.stringify(countOutcomes(fleet.began(caller, EVER)))}`,
      ),
      `scarce key admitted ${admittedOf(fleet.began("scarce", away))} in ${secondsOf(away).toFixed(1)} s`,
      `false 401s ${falseRefusals}, lost entries ${lost.length} of ${admittedOf(fleet.traffic.seen)}`,
      `back after ${secondsOf(returning).toFixed(1)} s, memory ${(phases.grownBytes / 2 ** 20).toFixed(0)} MiB more`,
    ].join("\n  "),
  );

  expect(lost).toEqual([]);
  expect(outcomesOf(plain(EVER))).toEqual(["200"]);
  expect(outcomesOf(fleet.began("scarce", EVER))).toEqual(["200", "429"]);
  expect(plain(before).length).toBeGreaterThan(50);
  // Before and after the fault there are no failures.
  for (const window of [before, after]) {
    expect(outcomesOf(fleet.within("budget", window))).toEqual(["200"]);
    expect(outcomesOf(fleet.within("unknown", window))).toEqual(["401"]);
  }
  expect(latencies(plain(EVER)).max).toBeLessThan(FIRST_WAIT_MS);
  expect(latencies(plain(settled)).p99).toBeLessThan(KNOWN_WAIT_MS);
  expect(phases.grownBytes).toBeLessThan(MAX_GROWTH_BYTES);

  // The local share applies: the remaining burst, the refill, and one more for each replica.
  const rate = SCARCE_RPM / 60;
  const admitted = admittedOf(fleet.began("scarce", away));
  expect(admitted).toBeGreaterThan(0);
  expect(admitted).toBeLessThanOrEqual(BURST + Math.ceil(secondsOf(away) * rate) + REPLICAS);
  const totalS = (phases.after.sinceMs + AFTER_MS + SLACK_MS - before.sinceMs) / 1_000;
  // The shared bucket refills or is lost meanwhile, so a burst is admitted again afterwards. A share is at least one
  // request, at the start and at the end of the fault, because replicas detect it at different times.
  const most = 2 * BURST + Math.ceil(totalS * rate) + 2 * REPLICAS;
  expect(admittedOf(fleet.began("scarce", EVER))).toBeLessThanOrEqual(most);
}

describe("three replicas without PostgreSQL", () => {
  it.each(DATABASE_FAULTS)(
    "continue with cached keys, and lose no entries: $name",
    async ({ name, lastsMs, begin, end }) => {
      const databaseUrl = await createDatabase(server.url);
      const fleet = await startWatchedFleet({ replicas: REPLICAS, databaseUrl, redisUrl: undefined });
      onTestFinished(() => fleet.close());
      const phases = await live(fleet, {
        begin: () => begin(databaseUrl),
        lastsMs,
        async whileAway() {
          const alone = { ready: true, ledger: { away: true }, rates: { alone: true } };
          // Its last statement may have ended just before.
          await expect
            .poll(() => fleet.readiness(), { timeout: 3_000 })
            .toMatchObject(Array.from({ length: REPLICAS }, () => alone));
        },
        end,
        async isBack() {
          const all = await fleet.readiness();
          return all.every(({ ledger, rates }) => !ledger.away && ledger.waiting < 10 && !rates.alone);
        },
      });
      await expectPromises(`PostgreSQL ${name}`, fleet, phases);

      expect(outcomesOf(fleet.within("budget", phases.away))).toEqual(["503"]);
      expect(outcomesOf(fleet.within("unknown", phases.away))).toEqual(["503"]);
      expect(outcomesOf(fleet.began("budget", EVER))).toEqual(["200", "503"]);
      expect(outcomesOf(fleet.began("unknown", EVER))).toEqual(["401", "503"]);

      await expectSpentAsWritten(fleet, databaseUrl);
      expectOncePerReplica(fleet, "the ledger cannot be written; entries are kept in files of data_dir");
      expectOncePerReplica(fleet, "the ledger is written again");

      await expectRevocationNotified(fleet, databaseUrl);
    },
  );
});

/** Checks that the spent budget equals the ledger entries, and that refused requests have no hold. */
async function expectSpentAsWritten({ deployment, budgetKeyId }: WatchedFleet, databaseUrl: string): Promise<void> {
  const sum = `select sum(cost_micro_usd)::bigint as cost from completions where key_id = '${budgetKeyId}'`;
  const [written] = await queryPostgres(databaseUrl, sum);
  const [spending] = await deployment.store.ledger.spending([`key:${budgetKeyId}`], monthOf(systemClock.now()));
  expect(spending).toEqual({ spentMicroUsd: Number(written!["cost"]), heldMicroUsd: 0 });
}

function expectOncePerReplica(fleet: WatchedFleet, message: string): void {
  expect(fleet.countInLogs(message), message).toEqual(Array.from({ length: REPLICAS }, () => 1));
}

async function askOnce(url: string, key: string): Promise<number> {
  const response = await postChat(url, key, { model: MODEL });
  await response.body?.cancel();
  return response.status;
}

/** Sooner than keys are refreshed without a notification. */
const NOTIFIED_MS = 2_500;

async function expectRevocationNotified(fleet: WatchedFleet, databaseUrl: string): Promise<void> {
  // Last query of such a connection: LISTEN, or the check of it.
  const listeners = `select count(*) as count from pg_stat_activity
    where datname = current_database()
    and (query = 'listen parley_keys' or query like 'select 1 from pg_listening_channels%')`;
  await expect
    .poll(async () => Number((await queryPostgres(databaseUrl, listeners))[0]!["count"]), { timeout: 8_000 })
    .toBeGreaterThanOrEqual(REPLICAS);
  const { secret, record } = await fleet.createKey();
  const statuses = (): Promise<number[]> =>
    Promise.all(
      fleet.deployment.products.map(async ({ url }) => {
        const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
        await response.body?.cancel();
        return response.status;
      }),
    );
  expect(await statuses()).toEqual([200, 200, 200]);
  await revokeKey({ store: fleet.deployment.store.keys, clock: systemClock }, record.id);
  const revokedAtMs = performance.now();
  await expect.poll(statuses, { timeout: NOTIFIED_MS }).toEqual([401, 401, 401]);
  console.log(`  a revocation is heard after ${(performance.now() - revokedAtMs).toFixed(0)} ms`);
}

describe("three replicas without Redis", () => {
  it.each(["hung", "stopped"] as const)("continue with their shares of each limit: %s", async (how) => {
    const redis = await startRedis();
    const databaseUrl = await createDatabase(server.url);
    const fleet = await startWatchedFleet({ replicas: REPLICAS, databaseUrl, redisUrl: redis.url });
    onTestFinished(() => fleet.close());
    const phases = await live(fleet, {
      begin: async () => (how === "hung" ? redis.freeze() : await redis.kill()),
      lastsMs: 6_000,
      async whileAway() {
        for (const replica of await fleet.readiness())
          expect(replica).toMatchObject({ ready: true, ledger: { away: false }, rates: { alone: true } });
        const faults = new RegExp(
          `^parley_rates_store_faults_total\\{fault="${how === "hung" ? "late" : "disconnected"}"\\} [1-9]`,
          "m",
        );
        for (const { operationsUrl } of fleet.deployment.products)
          expect(await (await fetch(`${operationsUrl}/metrics`)).text()).toMatch(faults);
      },
      end: async () => (how === "hung" ? redis.thaw() : await redis.start()),
      isBack: async () => (await fleet.readiness()).every(({ rates }) => !rates.alone),
    });
    await expectPromises(`Redis ${how}`, fleet, phases);
    // Only rates depend on Redis.
    expect(outcomesOf(fleet.began("budget", EVER))).toEqual(["200"]);
    expect(outcomesOf(fleet.began("unknown", EVER))).toEqual(["401"]);
    expect(latencies(fleet.began("plain", EVER)).max).toBeLessThan(REDIS_WAIT_MS);
    expectOncePerReplica(fleet, "rates cannot be counted together; this replica allows its share");
    expectOncePerReplica(fleet, "rates are counted together again");
    await expectSharedLimits(fleet);
  });
});

/** Checks that all replicas together admit one limit. */
async function expectSharedLimits(fleet: WatchedFleet): Promise<void> {
  const { secret } = await fleet.createKey({ requestsPerMinute: SCARCE_RPM });
  const urls = fleet.deployment.products.map(({ url }) => url);
  const beganMs = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: 3 * BURST }, (_, index) => askOnce(urls[index % urls.length]!, secret)),
  );
  const admitted = statuses.filter((status) => status === 200).length;
  expect(admitted).toBeGreaterThanOrEqual(BURST);
  expect(admitted).toBeLessThanOrEqual(BURST + Math.ceil(((performance.now() - beganMs) / 60_000) * SCARCE_RPM));
}

describe("a process whose SQLite file is locked by another for two seconds", () => {
  it("fails no request, loses no entry and answers health checks meanwhile", async () => {
    const fleet = await startWatchedFleet({ replicas: 1, databaseUrl: undefined, redisUrl: undefined });
    onTestFinished(() => fleet.close());
    const { home, operationsUrl } = fleet.deployment.products[0]!;
    await delay(1_000);
    const free = await healthLatencies(operationsUrl, delay(1_000));
    const beganMs = performance.now();
    const other = startProcess(HOLD_LOCK, join(home, "data", "parley.db"), String(LOCK_MS));
    await other.line();
    const lockedAtMs = performance.now();
    const locked = await healthLatencies(operationsUrl, other.ended);
    const locking: Window = { sinceMs: lockedAtMs, untilMs: performance.now() };
    expect(await other.ended).toBe(0);
    await delay(1_000);
    await fleet.traffic.stop();
    const lost = await fleet.findLost();
    const text = ({ p50, p99, max }: ReturnType<typeof spread>): string =>
      [p50, p99, max].map((ms) => ms.toFixed(0)).join("/");
    console.log(
      [
        `SQLite locked for ${secondsOf(locking).toFixed(1)} s by another process`,
        `/healthz (p50/p99/max ms): free ${text(free)}, locked ${text(locked)}`,
        `plain key: free ${toText(fleet.began("plain", { sinceMs: 0, untilMs: beganMs }))}, locked ${toText(fleet.began("plain", locking))}`,
        ...CALLERS.map((caller) => `${caller} ${JSON.stringify(countOutcomes(fleet.began(caller, EVER)))}`),
        `lost entries ${lost.length} of ${admittedOf(fleet.traffic.seen)}`,
      ].join("\n  "),
    );
    expect(lost).toEqual([]);
    expect(outcomesOf(fleet.began("plain", EVER))).toEqual(["200"]);
    expect(outcomesOf(fleet.began("budget", EVER))).toEqual(["200"]);
    expect(outcomesOf(fleet.began("scarce", EVER))).toEqual(["200", "429"]);
    expect(outcomesOf(fleet.began("unknown", EVER))).toEqual(["401"]);
    expect(locked.p99).toBeLessThan(HEALTH_MS);
    expect(latencies(fleet.began("plain", locking)).max).toBeGreaterThan(LOCK_MS / 2);
  });
});

/** Repeats `/healthz` until `until` settles, and returns the latencies. */
async function healthLatencies(operationsUrl: string, until: Promise<unknown>): Promise<ReturnType<typeof spread>> {
  const timesMs: number[] = [];
  const state = { isOver: false };
  void until.then(() => (state.isOver = true));
  while (!state.isOver) {
    const beganMs = performance.now();
    const response = await fetch(`${operationsUrl}/healthz`);
    expect(await response.json()).toEqual({ status: "ok" });
    timesMs.push(performance.now() - beganMs);
    await delay(HEALTH_EVERY_MS);
  }
  return spread(timesMs);
}

import { join } from "node:path";
import { sql } from "kysely";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { hashApiKey } from "../../src/access/api-key.ts";
import { systemClock } from "../../src/core/clock.ts";
import { connect, connectRanking } from "../../src/store/database.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { PostgresConnections } from "../../src/store/postgres/pool.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { EXACT, raceForBudget } from "../store/budget-race.ts";
import { migrateOldEntries, migrateOldKey, migrateOldRoles, OLD_KEY, OLD_ROLES } from "../store/old-database.ts";
import { demand } from "../store/contracts/demands.ts";
import { entry, NOON } from "../store/contracts/entries.ts";
import { createDatabase, PASSWORD, queryPostgres } from "../support/postgres.ts";
import { startProcess } from "../support/processes.ts";

const freshDatabase = (): Promise<string> => createDatabase(inject("postgresUrl"));

async function open(databaseUrl: string): Promise<Store> {
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => store.close());
  return store;
}

/** Number of statements that wait for a lock. */
const WAITING = "select count(*) as waiting from pg_stat_activity where wait_event_type = 'Lock'";

/** Deadlocks are retried, so only PostgreSQL's counter shows them. */
async function expectNoDeadlock(url: string): Promise<void> {
  const query = "select deadlocks from pg_stat_database where datname = current_database()";
  expect(await queryPostgres(url, query)).toEqual([{ deadlocks: "0" }]);
}

it("statements that rank days have a minute", async () => {
  const ranking = await connectRanking({ dataDir: "/nowhere", databaseUrl: await freshDatabase() });
  onTestFinished(() => ranking.close());
  const { rows } = await sql<{ statement_timeout: string }>`show statement_timeout`.execute(ranking.query);
  expect(rows).toEqual([{ statement_timeout: "54s" }]);
});

it("a statement that takes too long says so, and keeps its connection", async () => {
  const pool = new PostgresConnections({ url: await freshDatabase(), limitMs: 500, connections: 1 });
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  await expect(client.query("select pg_sleep(2)", [])).rejects.toMatchObject({ code: "57014", isTimeLimit: true });
  expect(await client.query("select 1 as one", [])).toMatchObject({ rows: [{ one: 1 }] });
  client.release();
});

it("a process that stops within a transaction keeps its locks for seconds, and what it began is undone", async () => {
  const databaseUrl = await freshDatabase();
  const store = await open(databaseUrl);
  const hold = () =>
    store.budgets.hold(demand({ amountMicroUsd: 1 })).then(
      ({ admitted }) => admitted,
      () => false,
    );
  expect(await hold()).toBe(true);
  const other = await connect({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => other.close());
  const [locked, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stopped = other.transaction(async (transaction) => {
    await sql`update spending set spent_micro_usd = 1000 where subject = 'key:k'`.execute(transaction);
    locked.resolve();
    await goesOn.promise;
  });
  await locked.promise;
  expect(await hold()).toBe(false);
  await expect.poll(hold, { timeout: 30_000 }).toBe(true);
  goesOn.resolve();
  await expect(stopped).rejects.toMatchObject({ name: "StoreError" });
  // The next transaction has a connection of its own.
  await other.transaction((transaction) => sql`update spending set spent_micro_usd = 0`.execute(transaction));
});

it("a locked row of spending fails the requests that need it, and delays others by no more than a second", async () => {
  const databaseUrl = await freshDatabase();
  const store = await open(databaseUrl);
  const hold = (subject: string) =>
    store.budgets.hold(demand({ amountMicroUsd: 1, holds: [{ subject, limitMicroUsd: 1_000 }] })).then(
      ({ admitted }) => admitted,
      () => "failed",
    );
  const holdAll = (...subjects: string[]) => Promise.all(subjects.map(hold));
  expect(await holdAll("key:a", "key:b")).toEqual([true, true]);
  const unlock = await lockSpendingOfB(databaseUrl);
  expect(await holdAll("key:a", "key:b", "key:new")).toEqual([true, "failed", true]);
  await unlock();
  expect(await holdAll("key:a", "key:b", "key:new")).toEqual([true, true, true]);
});

it("a refused demand waits for a compaction alone, and one that fails makes no other demand fail", async () => {
  const databaseUrl = await freshDatabase();
  const store = await open(databaseUrl);
  const hold = (subject: string, amountMicroUsd: number) =>
    store.budgets.hold(demand({ amountMicroUsd, holds: [{ subject, limitMicroUsd: 1_000 }] })).then(
      ({ admitted }) => admitted,
      () => "failed",
    );
  expect(await Promise.all(["key:a", "key:b"].map((subject) => hold(subject, 1)))).toEqual([true, true]);
  const unlock = await lockSpendingOfB(databaseUrl);
  await store.ledger.insert([entry({ keyId: "b", costMicroUsd: 1 })]);
  expect(await Promise.all([hold("key:a", 1), hold("key:a", 1_001)])).toEqual([true, false]);
  await unlock();
});

describe("migration of PostgreSQL", () => {
  it("is done by one of three processes that start at once", async () => {
    const url = await freshDatabase();
    const starters = [1, 2, 3].map(() => startProcess(join(import.meta.dirname, "open-store.ts"), url));
    await Promise.all(starters.map((starter) => starter.line()));
    for (const starter of starters) starter.tell("go");
    const versions = await Promise.all(starters.map(async (starter) => JSON.parse(await starter.line()) as object));
    for (const each of versions) expect(each).toMatchObject({ after: MIGRATIONS.length });
    expect(await Promise.all(starters.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    expect(await queryPostgres(url, "select version from parley_schema")).toEqual([{ version: MIGRATIONS.length }]);
    expect(await queryPostgres(url, "select id from accounts")).toEqual([{ id: "acct_default" }]);
  });

  it("keeps the data of an older schema version", async () => {
    const databaseUrl = await freshDatabase();
    expect(await migrateOldKey({ dataDir: "/nowhere", databaseUrl })).toEqual(OLD_KEY);
    const another = { dataDir: "/nowhere", databaseUrl: await freshDatabase() };
    expect(await migrateOldRoles(another, OLD_ROLES.accounts)).toEqual(OLD_ROLES.become);
  });

  it("sums the usage from entries of an older schema version", async () => {
    const location = { dataDir: "/nowhere", databaseUrl: await freshDatabase() };
    const entries = [entry({ costMicroUsd: 99 }), entry(), entry({ servedModel: undefined, requestedModel: "n" })];
    expect(await migrateOldEntries(location, entries)).toEqual([
      ["m", 2],
      ["n", 1],
    ]);
  });

  it("is refused when the schema is newer, and changes nothing", async () => {
    const url = await freshDatabase();
    await (await openStore({ dataDir: "/nowhere", databaseUrl: url })).close();
    await queryPostgres(url, "update parley_schema set version = 99, usable_from = 99");
    await expect(open(url)).rejects.toThrow(/^PostgreSQL at 127.0.0.1:\d+\/test_.* version 99.*newer Parley/);
    expect(await queryPostgres(url, "select version from parley_schema")).toEqual([{ version: 99 }]);
  });
});

describe("an unusable PostgreSQL", () => {
  const admin = inject("postgresUrl");

  it.each([
    ["does not accept our password", admin.replace(PASSWORD, "wrong-secret"), "it does not take our password"],
    ["does not have this database", admin.replace(/\/postgres$/, "/nowhere"), "there is no database of this name"],
    [
      "is reachable at none of its hosts",
      `postgres://postgres:${PASSWORD}@127.0.0.1:1,127.0.0.1:2/x`,
      "PostgreSQL at 127.0.0.1:1, 127.0.0.1:2/x: nothing listens there",
    ],
    [
      "is asked for a standby",
      `postgres://postgres:${PASSWORD}@127.0.0.1:1/x?target_session_attrs=standby`,
      "database.url is not a PostgreSQL address",
    ],
    ["is not reachable", `postgres://postgres:${PASSWORD}@127.0.0.1:1/x`, "nothing listens there"],
    [
      "does not have a PostgreSQL URL",
      `mysql://root:${PASSWORD}@127.0.0.1/x`,
      "database.url is not a PostgreSQL address",
    ],
    ["does not have a valid URL", `postgres://postgres:${PASSWORD}@:x:y/`, "database.url is not a PostgreSQL address"],
  ])("that %s is reported, without the password", async (_what, url, message) => {
    const error = await open(url).catch((each: Error) => each);
    expect(error).toMatchObject({ name: "StoreError", message: expect.stringContaining(message) as string });
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
      const text = `${String(cause)} ${cause.stack} ${JSON.stringify(cause)}`;
      expect(text).not.toContain(PASSWORD);
      expect(text).not.toContain("wrong-secret");
    }
  });
});

describe("replicas on one PostgreSQL", () => {
  it("never grant a budget twice", async () => {
    const databaseUrl = await freshDatabase();
    await (await openStore({ dataDir: "/nowhere", databaseUrl })).close();
    expect(await raceForBudget({ dataDir: "/nowhere", databaseUrl })).toEqual(EXACT);
    await expectNoDeadlock(databaseUrl);
  });

  it("write an entry once, whichever replicas submit it", async () => {
    const url = await freshDatabase();
    const stores = await Promise.all([open(url), open(url), open(url)]);
    const entries = Array.from({ length: 200 }, (_, index) => entry({ keyId: `key_${index % 7}`, costMicroUsd: 10 }));
    const orders = [entries, entries.toReversed(), entries.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1))];
    await Promise.all(
      stores.flatMap((store, index) =>
        [0, 50, 100, 150].map((start) => store.ledger.insert(orders[index]!.slice(start, start + 50))),
      ),
    );
    const [{ ledger, usage }] = stores;
    expect((await ledger.list({ limit: 999 })).entries).toHaveLength(200);
    expect(await ledger.spending(["account:acct_default"], "2026-11")).toEqual([
      { spentMicroUsd: 2000, heldMicroUsd: 0 },
    ]);
    const {
      rows: [sums],
    } = await usage.summarize({ sinceMs: 0, untilMs: 2 * NOON, by: "none", step: "all" });
    expect(sums?.sums).toMatchObject({ completions: 200, costMicroUsd: 2000 });
    await expectNoDeadlock(url);
  });

  it("record the last use of the same keys in one order, also for entries without cost", async () => {
    const url = await freshDatabase();
    const stores = await Promise.all([open(url), open(url), open(url), open(url)]);
    // Enough keys that PostgreSQL uses the index for each.
    const made = `select 'key_' || n, 'acct_default', 'n', 'h' || n, 'd', '[]', 1 from generate_series(0, 2999) n`;
    const columns = "id, account_id, name, hash, display, capabilities, created_at_ms";
    await queryPostgres(url, `insert into api_keys (${columns}) ${made}`);
    await queryPostgres(url, "analyze api_keys");
    let latestMs = NOON;
    await Promise.all(
      stores.map(async ({ ledger }, replica) => {
        for (let round = 0; round < 100; round += 1) {
          // Last use is recorded once a minute.
          latestMs += 60_000;
          // A subset of 23 keys, different each time and in another order; and a model with usage sums of its own.
          const free = { costMicroUsd: 0, servedModel: `${replica}`, endedAtMs: latestMs };
          const keyIds = Array.from(
            { length: 12 },
            (_, index) => `key_${((index + 1) * (replica + 3) * (round + 1)) % 23}`,
          );
          await ledger.insert(keyIds.map((keyId) => entry({ ...free, keyId })));
        }
      }),
    );
    await stores[0].ledger.flush();
    const uses = await queryPostgres(url, "select max(last_used_at_ms) as latest from api_keys");
    expect(uses).toEqual([{ latest: `${latestMs}` }]);
    await expectNoDeadlock(url);
  });

  it("write entries while more reports run than there are connections for them", async () => {
    const url = await freshDatabase();
    const { ledger, usage } = await open(url);
    await ledger.insert([entry()]);
    // Only reports by account read accounts.
    const lock = new pg.Client({ connectionString: url });
    await lock.connect();
    await lock.query("begin; lock table accounts in access exclusive mode");
    let answered = 0;
    const query = { sinceMs: 0, untilMs: 2 * NOON, by: "account", step: "all" } as const;
    const reports = Array.from({ length: 20 }, () => usage.summarize(query).finally(() => (answered += 1)));
    const all = Promise.allSettled(reports);
    await expect.poll(async () => (await queryPostgres(url, WAITING))[0]).toEqual({ waiting: "3" });
    await ledger.insert([entry()]);
    expect(answered).toBe(0);
    await lock.end();
    await all;
  });

  it("notify each other of key changes, and refresh all keys after a lost connection", async () => {
    const url = await freshDatabase();
    const [mine, other] = await Promise.all([open(url), open(url)]);
    const heard: (string | undefined)[] = [];
    onTestFinished(mine.keyChanges.subscribe((hash) => void heard.push(hash)));
    await expect.poll(() => heard).toEqual([undefined]);
    const context = { store: other.keys, clock: systemClock };
    const { secret, record } = await createKey(context, { name: "a" });
    await expect.poll(() => heard).toContain(hashApiKey(secret));
    heard.length = 0;
    await queryPostgres(url, "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'");
    await expect.poll(() => heard).toContain(undefined);
    heard.length = 0;
    await revokeKey(context, record.id);
    await expect.poll(() => heard).toEqual([hashApiKey(secret)]);
  });

  it("reconnect when the server has closed their connections", async () => {
    const url = await freshDatabase();
    const { keys, ledger } = await open(url);
    await Promise.all([keys.list(), keys.list(), ledger.insert([entry()])]);
    await queryPostgres(
      url,
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()",
    );
    await expect.poll(() => keys.list().catch(() => undefined)).toEqual([]);
    await expect.poll(() => ledger.insert([entry()]).then(() => true)).toBe(true);
  });
});

/** Locks a row of spending in another transaction; returns what ends it. */
async function lockSpendingOfB(databaseUrl: string): Promise<() => Promise<void>> {
  const other = await connect({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => other.close());
  const [locked, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holder = other.transaction(async (transaction) => {
    await sql`select * from spending where subject = 'key:b' for update`.execute(transaction);
    locked.resolve();
    await goesOn.promise;
  });
  await locked.promise;
  return async () => {
    goesOn.resolve();
    await holder;
  };
}

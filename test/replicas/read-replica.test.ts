import { afterAll, beforeAll, expect, it } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";
import { entry } from "../store/contracts/entries.ts";
import { createDatabase, type PostgresServer, queryPostgres, startPostgres } from "../support/postgres.ts";

let primary: PostgresServer;
let standby: PostgresServer;
let standbyUrl: string;
let store: Store;

beforeAll(async () => {
  primary = await startPostgres();
  standby = await startPostgres({ standbyOf: primary });
  const databaseUrl = await createDatabase(primary.url);
  standbyUrl = new URL(new URL(databaseUrl).pathname, standby.url).href;
  store = await openStore({ dataDir: "/nowhere", databaseUrl, databaseReadUrl: standbyUrl });
}, 60_000);
afterAll(async () => {
  await store?.close();
  await standby?.stop();
  await primary?.stop();
});

const count = async (): Promise<number> => (await store.ledger.list({ limit: 99 })).entries.length;

/** Resolves when the standby has an entry that was just written, and reports are read from it. */
async function untilRead(): Promise<void> {
  const { length } = (await store.ledger.list({ limit: 99 })).entries;
  await store.ledger.insert([entry()]);
  await store.ledger.flush();
  await expect.poll(count, { timeout: 20_000 }).toBe(length + 1);
  // The standby may get the new database later than the primary.
  let before = NaN;
  await expect.poll(async () => (before = await reads().catch(() => NaN)), { timeout: 20_000 }).not.toBeNaN();
  await expect
    .poll(async () => (await count()) > 0 && (await reads()) > before, { timeout: 20_000, interval: 200 })
    .toBe(true);
}

/** Scans of the ledger on the standby. */
async function reads(): Promise<number> {
  const scans =
    "select coalesce(sum(seq_scan + idx_scan), 0) as scans from pg_stat_user_tables where relname like 'completions_%'";
  const [row] = await queryPostgres(standbyUrl, scans);
  return Number(row!["scans"]);
}

it("lists of requests are read from a standby, which may be five seconds behind", async () => {
  await untilRead();
  const known = await count();
  await queryPostgres(standbyUrl, "select pg_wal_replay_pause()");
  const late = entry();
  await store.ledger.insert([late]);
  await store.ledger.flush();
  // A look-up of one request is the primary's.
  expect(await store.ledger.find(late.completionId)).toBeDefined();
  expect(await count()).toBe(known);
  await expect.poll(count, { timeout: 8_000, interval: 200 }).toBe(known + 1);
  await queryPostgres(standbyUrl, "select pg_wal_replay_resume()");
  await untilRead();
}, 60_000);

it("lists are read from the primary while the standby is unavailable", async () => {
  await untilRead();
  const known = await count();
  await standby.halt();
  await store.ledger.insert([entry()]);
  await store.ledger.flush();
  await expect.poll(() => count().catch(String), { timeout: 8_000, interval: 200 }).toBe(known + 1);
}, 60_000);

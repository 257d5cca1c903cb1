import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { monthOf, systemClock } from "../../src/core/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { demand } from "../store/contracts/demands.ts";
import { entry } from "../store/contracts/entries.ts";
import { createDatabase, type PostgresServer, startPostgres } from "../support/postgres.ts";

const MAX_CONNECTIONS = 20;
/** The driver's time limits are 2 s for a connection and 2 s for a query; the rest is for a busy machine. */
const BOUND_MS = 6_000;

let server: PostgresServer;
let store: Store;

beforeAll(async () => {
  server = await startPostgres({ maxConnections: MAX_CONNECTIONS });
});

afterAll(() => server.stop());

beforeEach(async () => {
  store = await openStore({ dataDir: "/nowhere", databaseUrl: await createDatabase(server.url) });
  onTestFinished(() => store.close());
});

function takeRate(): Promise<unknown> {
  const limits = { requestsPerMinute: 5, tokensPerMinute: undefined, concurrentRequests: undefined };
  return store
    .createRates({ burstMs: 1000 })
    .take({ id: "r", subjects: [{ subject: "key:k", accountId: "a", ...limits }], tokens: 1 });
}

/** All database operations of a request, some on open connections. */
function askEverything(): Promise<unknown>[] {
  return [
    store.keys.findByHash("none"),
    store.keys.findByHashes(["none"]),
    store.budgets.hold(demand()),
    store.ledger.insert([entry()]),
    takeRate(),
    ...Array.from({ length: 20 }, () => store.keys.list()),
  ];
}

async function expectRejectedInTime(asked: readonly Promise<unknown>[]): Promise<void> {
  const startedAt = performance.now();
  const results = await Promise.allSettled(asked);
  expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
  expect(results.map(({ status }) => status)).toEqual(asked.map(() => "rejected"));
}

describe("a hung PostgreSQL", () => {
  it("causes a timeout each time, and is used again when it resumes", async () => {
    await Promise.all(askEverything());
    const { record } = await createKey({ store: store.keys, clock: systemClock }, { name: "a" });
    await server.pause();
    await Promise.all([
      expectRejectedInTime(askEverything()),
      expect(store.keys.findByHash("none")).rejects.toMatchObject({
        name: "StoreError",
        // Of the server, or of the connections that it keeps busy.
        message: expect.stringMatching(/in time|take long/) as string,
      }),
      expect(store.keys.findByHashes(["none"])).rejects.toMatchObject({ name: "StoreError" }),
      expect(takeRate()).rejects.toMatchObject({ name: "RateStoreError" }),
    ]);
    await expectRejectedInTime(askEverything());
    await server.resume();
    await expect.poll(() => store.keys.list().catch(() => undefined)).toEqual([record]);
    await Promise.all(askEverything());
  });

  it("does not prevent the process from closing", async () => {
    await Promise.all(askEverything());
    await server.pause();
    const startedAt = performance.now();
    const asked = Promise.allSettled(askEverything());
    await store.close();
    await asked;
    expect(performance.now() - startedAt).toBeLessThan(BOUND_MS + 2_000);
    await server.resume();
  });

  it("settles an entry once after its write timed out", async () => {
    const unsure = entry();
    await store.ledger.insert([entry()]);
    await server.pause();
    await expect(store.ledger.insert([unsure])).rejects.toThrow("in time");
    await server.resume();
    await expect
      .poll(() =>
        store.ledger
          .insert([unsure])
          .then(() => true)
          .catch(() => false),
      )
      .toBe(true);
    expect((await store.ledger.list({ limit: 9 })).entries).toHaveLength(2);
    expect(await store.ledger.spending(["key:key_gone"], "2026-11")).toMatchObject([{ spentMicroUsd: 60 }]);
  });
});

describe("a budget hold of a completion that never started", () => {
  const held = async (): Promise<number> =>
    (await store.ledger.spending(["key:k"], monthOf(systemClock.now())))[0]!.heldMicroUsd;

  it.each([
    ["with the next hold", () => store.budgets.hold(demand({ amountMicroUsd: 7 })), 7],
    ["by the periodic job", () => store.budgets.reap(), 0],
  ] as const)("is released once the database is available again: %s", async (_, next, left) => {
    const refused = demand();
    await store.budgets.hold(refused);
    await server.pause();
    await expect(store.budgets.cancel(refused.id)).rejects.toThrow("in time");
    await server.resume();
    expect(await held()).toBe(100);
    await next();
    expect(await held()).toBe(left);
  });
});

describe("a PostgreSQL without free connections", () => {
  it("is reported as such, and used again once a connection is free", async () => {
    const clients: pg.Client[] = [];
    for (;;) {
      const client = new pg.Client(server.url);
      client.on("error", () => undefined);
      try {
        await client.connect();
        clients.push(client);
      } catch {
        break;
      }
    }
    // Existing connections of the pool still work; only new ones fail.
    const results = await Promise.allSettled(Array.from({ length: 30 }, () => store.keys.list()));
    const reasons = results.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
    for (const reason of reasons) expect(reason).toMatch(/it has no connection left|in time/);
    const late = openStore({ dataDir: "/nowhere", databaseUrl: server.url });
    await expect(late).rejects.toThrow("it has no connection left; raise its max_connections, or run fewer replicas");
    await Promise.all(clients.map((client) => client.end()));
    await expect
      .poll(() =>
        Promise.all(Array.from({ length: 30 }, () => store.keys.list())).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });
});

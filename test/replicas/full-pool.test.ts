import { expect, inject, it, onTestFinished } from "vitest";
import { PostgresConnections } from "../../src/store/postgres/pool.ts";
import { openStore } from "../../src/store/store.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";

it("a full pool says so, and is no failure of its host", async () => {
  const database = new URL(await createDatabase(inject("postgresUrl")));
  const { username, password, host, pathname } = database;
  // Nothing listens at the second host.
  const url = `postgres://${username}:${password}@${host},127.0.0.1:1${pathname}`;
  const connections = new PostgresConnections({ url, limitMs: 2_000, connections: 1 });
  onTestFinished(() => connections.end());
  const taken = await connections.connect();
  await expect(connections.connect()).rejects.toThrow("all connections to it are in use");
  expect(connections.isUp).toBe(true);
  // A new connection goes to the same host.
  taken.release(true);
  const next = await connections.connect();
  expect((await next.query<{ one: number }>("select 1 as one", [])).rows).toEqual([{ one: 1 }]);
  next.release();
});

it("each process takes its share of the server's connections, counted by the leases", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => store.close());
  // The server of the tests has 100, 3 of them reserved.
  expect(await store.shareConnections()).toEqual({ processes: 1, limit: 97, each: 14, isEnough: true });
  for (let process = 0; process < 21; process++) await store.ledger.renewLease(`process-${process}`);
  expect(await store.shareConnections()).toEqual({ processes: 21, limit: 97, each: 4, isEnough: true });
  const wait = (): Promise<unknown> => store.accounts.list();
  await Promise.all(Array.from({ length: 50 }, wait));
  const counts = "select count(*) as connections from pg_stat_activity where datname = current_database()";
  // Two of the usual ones and the one that asks.
  expect(await queryPostgres(databaseUrl, counts)).toEqual([{ connections: "3" }]);
});

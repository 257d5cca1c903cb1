import { expect, inject, it, onTestFinished } from "vitest";
import { PostgresConnections } from "../../src/store/postgres/pool.ts";
import { createDatabase } from "../support/postgres.ts";

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

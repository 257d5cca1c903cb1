import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { PostgresConnections } from "../../../src/store/postgres/pool.ts";
import { openDatabase } from "../../../src/store/open-database.ts";
import { UnreachableError } from "../../../src/store/store-error.ts";

/** A message of PostgreSQL's protocol. */
function toMessage(type: string, content: string): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, Buffer.from(content)]);
}

const LOGGED_IN = toMessage("R", "\0\0\0\0");
const READY = toMessage("Z", "I");

/** Starts a server that answers each connection, or each statement, with an error, as PgBouncer does. */
async function startRefusing(what: "connections" | "statements", code: string, message: string): Promise<string> {
  const error = toMessage("E", `SERROR\0VERROR\0C${code}\0M${message}\0\0`);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("data", () => {
      if (what === "connections") return void socket.end(error);
      socket.write(Buffer.concat([LOGGED_IN, READY]));
      socket.on("data", () => void socket.write(Buffer.concat([error, READY])));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `postgres://parley@127.0.0.1:${(server.address() as AddressInfo).port}/parley`;
}

describe("a connection that is refused", () => {
  it.each([
    ["by a pooler without its server", "08P01", "server login has been failing, try again later", true],
    ["by a pooler that cannot connect", "08006", "the server connection failed", true],
    ["by a pooler that refuses our settings", "08P01", "unsupported startup parameter: statement_timeout", false],
    ["for the password", "28P01", "password authentication failed", false],
  ])("%s may be tried again: %s %s: %s", async (_, code, message, mayBeTried) => {
    const pool = new PostgresConnections({
      url: await startRefusing("connections", code, message),
      limitMs: 2_000,
      connections: 1,
    });
    onTestFinished(() => pool.end());
    const error: unknown = await pool.connect().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "StoreError", cause: { code } });
    expect(error instanceof UnreachableError).toBe(mayBeTried);
  });
});

it.each([
  ["57014", "canceling statement due to statement timeout", true],
  ["08P01", "server login has been failing, try again later", true],
  ["42501", "permission denied", false],
])("a database whose statements end with %s (%s) may be tried again: %s", async (code, message, mayBeTried) => {
  const databaseUrl = await startRefusing("statements", code, message);
  const error: unknown = await openDatabase({ dataDir: "/nowhere", databaseUrl }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: "StoreError", cause: { code } });
  expect(error instanceof UnreachableError).toBe(mayBeTried);
});

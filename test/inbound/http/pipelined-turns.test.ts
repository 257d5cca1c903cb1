import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type HttpServer, startHttpServer } from "../../../src/inbound/http/server.ts";
import { idleServices } from "../../support/idle-services.ts";

const CONNECTIONS = 160;
/** Requests of a connection without a sent response. */
const MAX_PIPELINED = 8;
/** Pipelined requests that begin in one turn. */
const MAX_PER_TURN = 32;
const REQUESTS = {
  "a request without a body": (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`,
  // Node runs microtasks for each piece of a body: the response before may be finished when the next request begins.
  "a request with a body": (path: string) => `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`,
};

/** Event loop turns since the test began. */
let turn: number;
/** Requests in the order in which they began. */
let begun: { readonly path: string; readonly turn: number }[];
/** Emits the path of each. */
let beginning: EventEmitter;
let server: HttpServer;
let sockets: Socket[];
let counting: boolean;

beforeEach(async () => {
  turn = 0;
  begun = [];
  beginning = new EventEmitter();
  sockets = [];
  counting = true;
  const count = (): void => {
    turn += 1;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  server = await startHttpServer(idleServices(), {
    host: "127.0.0.1",
    port: 0,
    corsOrigins: [],
    console: {
      handles: () => true,
      handle(request: IncomingMessage, response: ServerResponse): void {
        begun.push({ path: request.url!, turn });
        response.end();
        beginning.emit(request.url!);
      },
      handleMissing: () => false,
      drain: () => undefined,
    },
  });
});

afterEach(() => {
  counting = false;
  for (const socket of sockets) socket.destroy();
  server.close();
});

async function dial(): Promise<Socket> {
  const socket = connect(server.port, "127.0.0.1");
  sockets.push(socket);
  await once(socket.resume(), "connect");
  return socket;
}

/** Sends eight requests on each of many connections at once. */
async function flood(request: (path: string) => string): Promise<void> {
  const dialled = await Promise.all(Array.from({ length: CONNECTIONS }, dial));
  // The server has accepted a connection that it has answered.
  for (const socket of dialled) socket.write(request("/first"));
  await Promise.all(dialled.map((socket) => once(socket, "data")));
  begun = [];
  for (const [index, socket] of dialled.entries())
    socket.write(Array.from({ length: MAX_PIPELINED }, (_, number) => request(`/${index}/${number}`)).join(""));
}

it.each(Object.entries(REQUESTS))(
  "pipelined requests of many connections begin in turns, in the order of each connection: %s",
  async (_, request) => {
    await flood(request);
    await expect.poll(() => begun.length).toBe(CONNECTIONS * MAX_PIPELINED);
    const perTurn = Map.groupBy(begun, (one) => one.turn);
    const most = Math.max(...[...perTurn.values()].map((requests) => requests.length));
    // The first request of a connection does not wait.
    expect(most).toBeLessThanOrEqual(CONNECTIONS + MAX_PER_TURN);
    const ofConnections = Map.groupBy(begun, ({ path }) => path.split("/")[1]);
    for (const [index, requests] of ofConnections)
      expect(requests.map(({ path }) => path)).toEqual(
        Array.from({ length: MAX_PIPELINED }, (__, number) => `/${index}/${number}`),
      );
  },
);

it.each(Object.entries(REQUESTS))("requests that are not pipelined wait for none that are: %s", async (_, request) => {
  const known = await dial();
  /** Turns until a request begins on the known connection, and on a new one. */
  const measure = async (name: string): Promise<readonly [old: number, fresh: number]> => {
    const since = turn;
    const both = Promise.all([once(beginning, `/${name}/old`), once(beginning, `/${name}/fresh`)]);
    known.write(request(`/${name}/old`));
    (await dial()).write(request(`/${name}/fresh`));
    await both;
    const turnsOf = (which: string): number => begun.find(({ path }) => path === `/${name}/${which}`)!.turn - since;
    return [turnsOf("old"), turnsOf("fresh")];
  };
  const alone = await measure("alone");
  const waits = once(beginning, "/0/1");
  await flood(request);
  await waits;
  const amid = await measure("amid");
  // Others still wait.
  expect(begun.length).toBeLessThan(CONNECTIONS * MAX_PIPELINED - MAX_PER_TURN);
  expect(amid[0]).toBeLessThanOrEqual(alone[0] + 6);
  expect(amid[1]).toBeLessThanOrEqual(alone[1] + 8);
});

it("pipelined requests of closed connections do not begin", async () => {
  const waits = once(beginning, "/0/1");
  await flood(REQUESTS["a request without a body"]);
  await waits;
  for (const socket of sockets) socket.resetAndDestroy();
  const since = turn;
  await expect.poll(() => turn).toBeGreaterThan(since + (CONNECTIONS * MAX_PIPELINED) / MAX_PER_TURN);
  expect(begun.length).toBeLessThan(CONNECTIONS + MAX_PER_TURN * 8);
});

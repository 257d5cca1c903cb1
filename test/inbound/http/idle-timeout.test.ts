import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { closeIdleAfterRead } from "../../../src/inbound/http/idle-timeout.ts";

const IDLE_MS = 300;
const REQUEST = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

let server: Server;
let caller: Socket;
let answers: number;

beforeEach(async () => {
  const limits = { keepAliveTimeout: IDLE_MS, keepAliveTimeoutBuffer: 0 };
  server = createServer(limits, (_, response) => response.end("answer"));
  closeIdleAfterRead(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  caller = connect((server.address() as AddressInfo).port, "127.0.0.1");
  answers = 0;
  caller.setEncoding("latin1").on("data", (text: string) => (answers += text.split("HTTP/1.1 200").length - 1));
  caller.on("error", () => undefined);
  await once(caller, "connect");
  caller.write(REQUEST);
  await vi.waitUntil(() => answers === 1, { timeout: 10_000 });
});

afterEach(() => {
  caller.destroy();
  server.close();
});

it("a request that was sent in time is answered when the event loop was busy until its connection's idle time was over", async () => {
  // Within the event of a socket, because the next sockets are read before the next timers after a timer, but not after a socket.
  caller.once("data", () => {
    caller.write(REQUEST);
    const endMs = performance.now() + 3 * IDLE_MS;
    while (performance.now() < endMs);
  });
  caller.write(REQUEST);
  await expect.poll(() => answers).toBe(3);
});

it("a connection is closed when its idle time is over", async () => {
  await once(caller, "close");
  expect(answers).toBe(1);
});

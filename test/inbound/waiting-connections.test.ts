import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { startGrpcServer } from "../../src/inbound/grpc/server.ts";
import { startHttpServer } from "../../src/inbound/http/server.ts";
import type { EdgeServices } from "../../src/inbound/services.ts";
import { anyConnections } from "../support/admission.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { callGrpc } from "../support/tls-client.ts";

const ADDRESS = { host: "127.0.0.1", port: 0 } as const;
const MIB = 1024 * 1024;
const GRPC_LIMITS = { maxReceiveBytes: MIB, maxSendBytes: MIB, maxConnectionAgeMs: 3_600_000 };
/** Tells HTTP/1.1 from HTTP/2 by the first bytes; no gRPC is called. */
const SHARED = {
  maxConnectionAgeMs: Infinity,
  guardStream: () => expect.fail(),
  guardedBy: () => undefined,
  serve: () => expect.fail(),
};

async function askHealth(socket: Socket): Promise<unknown> {
  socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  const [bytes] = (await once(socket, "data")) as [Buffer];
  return bytes.toString("latin1").split("\r\n")[0];
}

async function checkHealth(socket: Socket): Promise<unknown> {
  const session = connectHttp2("http://127.0.0.1", { createConnection: () => socket }).on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return (await callGrpc(session, "/grpc.health.v1.Health/Check")).status;
}

it.each([
  [
    "HTTP",
    (services: EdgeServices) => startHttpServer(services, { ...ADDRESS, corsOrigins: [] }),
    askHealth,
    "HTTP/1.1 200 OK",
  ],
  [
    "HTTP, on a port with gRPC",
    (services: EdgeServices) => startHttpServer(services, { ...ADDRESS, corsOrigins: [], grpc: SHARED }),
    askHealth,
    "HTTP/1.1 200 OK",
  ],
  ["gRPC", (services: EdgeServices) => startGrpcServer(services, { ...ADDRESS, ...GRPC_LIMITS }), checkHealth, "0"],
])("%s: a connection that waits in the kernel when a drain begins is served", async (_, start, ask, answer) => {
  const services: Partial<EdgeServices> = {
    clock: new FakeClock(),
    connections: anyConnections(),
    refused: () => undefined,
  };
  const server = await start(services as EdgeServices);
  onTestFinished(() => server.close());
  const socket = connect(server.port, ADDRESS.host);
  onTestFinished(() => void socket.destroy());
  // It is connected in the next tick, before the event loop accepts it.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const drained = server.drain();
  expect(await ask(socket)).toBe(answer);
  socket.destroy();
  await drained;
});

it("HTTP: a connection whose first request comes when the port is closed is served", async () => {
  const connections = anyConnections();
  const accepted = vi.spyOn(connections, "add");
  const services: Partial<EdgeServices> = { clock: new FakeClock(), connections, refused: () => undefined };
  const server = await startHttpServer(services as EdgeServices, { ...ADDRESS, corsOrigins: [] });
  onTestFinished(() => server.close());
  const socket = connect(server.port, ADDRESS.host);
  onTestFinished(() => void socket.destroy());
  await expect.poll(() => accepted.mock.calls.length).toBe(1);
  // The idle connections are closed at intervals.
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const drained = server.drain();
  const isRefused = async (): Promise<boolean> => {
    const probe = connect(server.port, ADDRESS.host);
    const refused = await once(probe, "connect").then(
      () => false,
      () => true,
    );
    probe.destroy();
    return refused;
  };
  while (!(await isRefused())) await nextTurn();
  expect(await askHealth(socket)).toBe("HTTP/1.1 200 OK");
  await drained;
});

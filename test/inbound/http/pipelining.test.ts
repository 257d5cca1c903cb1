import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { RawConnection, rawRequest } from "../../product/support/raw-http.ts";
import {
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "../../product/support/upstream.ts";
import { startTestGateway, type TestGateway } from "../../support/gateway.ts";

/** Completions of a key that may be in flight. */
const PLACES = 4;
/** Requests of a connection without a sent response. */
const MAX_PIPELINED = 8;
const CHAT = "POST /v1/chat/completions";

let upstream: Upstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    if (!exchange.body.includes("silent")) return answerText(exchange, "hi");
    beginStream(exchange.response);
    exchange.response.write(textEvent("hi"));
  });
  const limits = { concurrent_requests: PLACES, requests_per_minute: "unlimited", tokens_per_minute: "unlimited" };
  gateway = await startTestGateway({ config: { ...localModel(upstream.url), limits } });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const headers = (): string[] => ["host: a", "content-type: application/json", `authorization: Bearer ${gateway.key}`];
const chat = (content: string, stream = false): string =>
  JSON.stringify({ model: "local/test", stream, messages: [{ role: "user", content }] });

/** Requests of a caller with a key. */
const REQUESTS = {
  valid: () => rawRequest(CHAT, headers(), chat("hi")),
  invalid: () => rawRequest(CHAT, headers(), "{}"),
  silent: () => rawRequest(CHAT, headers(), chat("silent", true)),
  Connect: () => rawRequest("POST /parley.v1.ModelService/List", headers(), "{}"),
  unfinished: () => rawRequest(CHAT, [...headers(), "content-length: 100"], "{"),
} as const;

function dial(): Socket {
  const socket = connect(gateway.httpPort, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket.resume();
}

const active = async (): Promise<number> => (await gateway.readiness()).active_calls;

/** Sends them at once; resolves when the server has taken, answered or refused some. */
async function send(bytes: Buffer): Promise<Socket> {
  const socket = dial();
  socket.write(bytes);
  await expect.poll(async () => socket.destroyed || socket.bytesRead > 0 || (await active()) > 0).toBe(true);
  return socket;
}

/** Resolves when all slots of the key are free again. */
async function placesAreFree(): Promise<void> {
  const ask = async (): Promise<number> => {
    const connection = new RawConnection(gateway.httpPort).write(REQUESTS.valid());
    const { status } = await connection.response();
    connection.close();
    return status;
  };
  const statuses = (): Promise<number[]> => Promise.all(Array.from({ length: PLACES }, ask));
  await expect.poll(statuses, { timeout: 5_000 }).toEqual(Array.from({ length: PLACES }, () => 200));
}

describe("requests sent at once on a connection", () => {
  it.each([1, MAX_PIPELINED])("are answered in order when there are %d", async (count) => {
    const connection = new RawConnection(gateway.httpPort);
    const ids = Array.from({ length: count }, (_, index) => `request-${index}`);
    connection.write(
      Buffer.concat(ids.map((id) => rawRequest("GET /v1/models/local/test", [...headers(), `x-request-id: ${id}`]))),
    );
    const answered: unknown[] = [];
    for (const _ of ids) answered.push((await connection.response()).headers["x-request-id"]);
    connection.close();
    expect(answered).toEqual(ids);
  });

  describe.each([2, 12, 60, 200])("of which there are %d", (count) => {
    it.each(Object.entries(REQUESTS))("hold nothing after the caller has left: %s", async (_, request) => {
      const socket = await send(Buffer.concat(Array.from({ length: count }, request)));
      socket.resetAndDestroy();
      await placesAreFree();
      await expect.poll(active).toBe(0);
    });

    it.each(Object.entries(REQUESTS))(
      "hold nothing when the caller ends its side with them: %s",
      async (_, request) => {
        const socket = dial().end(Buffer.concat(Array.from({ length: count }, request)));
        await expect.poll(() => socket.destroyed).toBe(true);
        await placesAreFree();
        await expect.poll(active).toBe(0);
      },
    );
  });

  it("are no fault when the caller leaves while the body of the last one arrives behind an answer", async () => {
    const faults: unknown[] = [];
    const note = (fault: unknown): void => void faults.push(fault);
    process.on("uncaughtException", note);
    onTestFinished(() => void process.off("uncaughtException", note));
    const socket = await send(Buffer.concat([REQUESTS.silent(), REQUESTS.unfinished()]));
    await expect.poll(active).toBe(2);
    socket.resetAndDestroy();
    await expect.poll(active).toBe(0);
    await placesAreFree();
    expect(faults).toEqual([]);
  });

  it("close it and hold nothing when one follows eight that are being answered", async () => {
    const socket = await send(Buffer.concat(Array.from({ length: MAX_PIPELINED }, REQUESTS.silent)));
    socket.write(REQUESTS.valid());
    await expect.poll(() => socket.destroyed).toBe(true);
    await placesAreFree();
    await expect.poll(active).toBe(0);
  });

  it("hold nothing when CONNECT follows them", async () => {
    const tunnel = rawRequest("CONNECT a:80", headers());
    const socket = await send(Buffer.concat([REQUESTS.silent(), REQUESTS.silent(), REQUESTS.valid(), tunnel]));
    await expect.poll(() => socket.destroyed).toBe(true);
    await placesAreFree();
    await expect.poll(active).toBe(0);
  });
});

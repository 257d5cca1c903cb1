import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { Connections } from "../../../src/inbound/connections.ts";
import { startOperationsServer } from "../../../src/inbound/http/operations.ts";

async function startPort() {
  const rendering = Promise.withResolvers<void>();
  const counts = { rendered: 0 };
  const server = await startOperationsServer({
    host: "127.0.0.1",
    port: 0,
    metrics: {
      contentType: "text/plain",
      async text() {
        counts.rendered += 1;
        await rendering.promise;
        return "up 1\n";
      },
    },
    readiness: () => ({ ready: true }),
    connections: new Connections({ max: 4, maxPerAddress: Infinity, clientOf: (address) => address }),
    clock: systemClock,
  });
  onTestFinished(() => server.close());
  return { ...server, rendering, counts };
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" }).on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

const askFor = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;

describe("the operations port", () => {
  it("closes the oldest silent connection when it has as many as it may", async () => {
    const { port } = await startPort();
    const silent = await open(port);
    const others = [await open(port), await open(port), await open(port), await open(port)];
    await expect.poll(() => silent.closed).toBe(true);
    expect(others.filter(({ closed }) => closed)).toEqual([]);
    const response = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(await response.json()).toEqual({ status: "ok" });
  });

  it("closes connections whose requests have not arrived when it has as many as it may", async () => {
    const { port, counts, rendering } = await startPort();
    const halves = await Promise.all([open(port), open(port), open(port)]);
    for (const half of halves) half.write("GET /healthz HTTP/1.1\r\n");
    const whole = await open(port);
    whole.write(askFor("/metrics"));
    await expect.poll(() => counts.rendered).toBe(1);
    const ask = (): Promise<unknown> => fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status, String);
    // Shorter than the time that headers may take.
    await expect.poll(ask, { timeout: 5_000 }).toBe(200);
    await expect.poll(() => halves.every(({ closed }) => closed)).toBe(true);
    rendering.resolve();
    const [answer] = await once(whole, "data");
    expect(String(answer)).toContain("200 OK");
  });

  it("renders the metrics once for all who ask meanwhile", async () => {
    const { port, counts, rendering } = await startPort();
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const ask = async (): Promise<number> => {
      const [response] = await once(request({ port, host: "127.0.0.1", path: "/metrics", agent }).end(), "response");
      response.resume();
      return response.statusCode;
    };
    const first = ask();
    await expect.poll(() => counts.rendered).toBe(1);
    const socket = await open(port);
    let received = "";
    socket.on("data", (bytes: Buffer) => (received += bytes.toString()));
    socket.write(askFor("/metrics").repeat(8));
    const others = [ask(), ask()];
    rendering.resolve();
    expect(await Promise.all([first, ...others])).toEqual([200, 200, 200]);
    await expect.poll(() => received.split("up 1").length - 1).toBe(8);
    expect(counts.rendered).toBeLessThan(4);
  });

  it("closes a connection with more than eight requests without a response", async () => {
    const { port } = await startPort();
    const socket = await open(port);
    socket.write(askFor("/metrics").repeat(9));
    await expect.poll(() => socket.resume().closed).toBe(true);
  });

  it("closes a connection whose request has a body", async () => {
    const { port } = await startPort();
    const socket = await open(port);
    let received = "";
    socket.on("data", (bytes: Buffer) => (received += bytes.toString()));
    socket.write(askFor("/healthz", "content-length: 1000\r\n"));
    await once(socket, "close");
    expect(received).toContain("200 OK");
  });
});

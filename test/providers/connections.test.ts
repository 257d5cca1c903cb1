import { setTimeout as delay } from "node:timers/promises";
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connectUpstream, type Upstream, type UpstreamAnswer } from "../../src/providers/http.ts";
import { localhost } from "./localhost-certificate.ts";
import { type RawServer, startRawServer } from "./raw-server.ts";

const opened: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0)) await part.stop();
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async function serve(answer: (socket: Socket) => void): Promise<{ server: RawServer; upstream: Upstream }> {
  const server = await startRawServer(answer);
  opened.push(server);
  const baseUrl = `http://127.0.0.1:${server.port}`;
  return { server, upstream: connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1000 }) };
}

const post = (upstream: Upstream, { body = "{}", idleMs = 10_000 } = {}): Promise<UpstreamAnswer> =>
  upstream.post({ path: "/x", headers: {}, body, signal: new AbortController().signal, idleMs }, "application/json");

async function textOf(answer: UpstreamAnswer): Promise<string> {
  return Buffer.concat([...(await answer.body())]).toString();
}

describe("a connection that is idle", () => {
  it("is closed when its server sends what nobody asked for, and no request gets that as its answer", async () => {
    const { server, upstream } = await serve((socket) => socket.write(OK));
    expect(await textOf(await post(upstream))).toBe("ok");
    await delay(20);
    server.sockets[0]!.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong");
    await expect.poll(() => server.openCount()).toBe(0);
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it.each([
    ["has sent what nobody asked for", (socket: Socket): void => void socket.write(OK.replace("ok", "no"))],
    ["has closed it", (socket: Socket): void => void socket.end()],
  ])("is not used when its server %s, and nobody has seen it yet", async (_, meanwhile) => {
    const { server, upstream } = await serve((socket) => socket.write(OK));
    expect(await textOf(await post(upstream))).toBe("ok");
    await delay(20);
    meanwhile(server.sockets[0]!);
    // What it has sent arrives while nothing is read.
    const untilMs = performance.now() + 50;
    const posted = post(upstream);
    while (performance.now() < untilMs);
    expect(await textOf(await posted)).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it.each([
    ["what comes with its end", `${OK}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong`],
    ["what says that the connection is closed", OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")],
    [
      "what says that it is kept for no longer than a second",
      OK.replace("\r\n\r\n", "\r\nkeep-alive: timeout=1\r\n\r\n"),
    ],
    ["what has no persistent connections", OK.replace("1.1", "1.0")],
  ])("is none after an answer with %s", async (_, answer) => {
    const { server, upstream } = await serve((socket) => socket.write(answer));
    expect(await textOf(await post(upstream))).toBe("ok");
    await expect.poll(() => server.openCount()).toBe(0);
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it("is given up a second before its server would close it", async () => {
    const { server, upstream } = await serve((socket) =>
      socket.write(OK.replace("\r\n\r\n", "\r\nKeep-Alive: timeout=2\r\n\r\n")),
    );
    expect(await textOf(await post(upstream))).toBe("ok");
    await delay(100);
    expect(server.openCount()).toBe(1);
    await expect.poll(() => server.openCount(), { timeout: 1500 }).toBe(0);
  });
});

describe("a connection whose answer nobody reads", () => {
  it("is not silent: its provider is not to blame", async () => {
    const size = 8 * 1024 * 1024;
    const { upstream } = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size, "a"));
    });
    // Long enough for a busy machine, which must not come late to what has arrived.
    const answer = await post(upstream, { idleMs: 500 });
    await delay(1200);
    expect(await textOf(answer)).toHaveLength(size);
  });
});

describe("TLS", () => {
  /** A server with a certificate of its own making, and the requests that it has read. */
  async function serveTls(answer: (socket: TLSSocket) => void) {
    const requests: string[] = [];
    const resumed: boolean[] = [];
    const server = createTlsServer(localhost, (socket) => {
      resumed.push(socket.isSessionReused());
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        requests.push(bytes.toString());
        answer(socket);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    opened.push({ stop: () => new Promise((resolve) => server.close(() => resolve())) });
    const baseUrl = `https://localhost:${(server.address() as AddressInfo).port}`;
    const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 5000 });
    opened.unshift({ stop: () => upstream.close() });
    return { upstream, requests, resumed };
  }

  /** Trusts the tests' certificate while `run` needs it. */
  async function trusting(run: () => Promise<void>): Promise<void> {
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, localhost.cert]);
    try {
      await run();
    } finally {
      setDefaultCACertificates(before);
    }
  }

  it("carries requests and answers to a server whose certificate is good", () =>
    trusting(async () => {
      const { upstream, requests } = await serveTls((socket) => socket.write(OK));
      for (let count = 0; count < 3; count++) {
        expect(await textOf(await post(upstream))).toBe("ok");
        await delay(1);
      }
      expect(requests).toHaveLength(3);
      expect(requests[0]).toMatch(/^POST \/x HTTP\/1\.1\r\nhost: localhost:\d+\r\n/);
    }));

  it("stalls a sender whose answer is not read, and loses nothing", () =>
    trusting(async () => {
      const body = Buffer.alloc(20_000_000, "abc");
      const { upstream } = await serveTls((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
        socket.write(body);
      });
      const answer = await post(upstream);
      await delay(100);
      const pieces: Buffer[] = [];
      for (let more = await answer.read(); more !== undefined; more = await answer.read()) pieces.push(...more);
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(1_000_000);
      expect(Buffer.concat(pieces).equals(body)).toBe(true);
    }));

  it("takes up the last session", () =>
    trusting(async () => {
      const { upstream, resumed } = await serveTls((socket) =>
        socket.write(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")),
      );
      for (let count = 0; count < 2; count++) {
        expect(await textOf(await post(upstream))).toBe("ok");
        await delay(50);
      }
      expect(resumed).toEqual([false, true]);
    }));

  it("sends nothing to a server whose certificate nobody has signed", async () => {
    const { upstream, requests } = await serveTls((socket) => socket.write(OK));
    await expect(post(upstream)).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider's certificate is not valid.",
      transient: false,
    });
    expect(requests).toEqual([]);
  });
});

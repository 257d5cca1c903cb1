import { setTimeout as delay } from "node:timers/promises";
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  connectUpstream,
  UNLIMITED,
  type Upstream,
  type UpstreamResponse,
  type UpstreamRequest,
} from "../../../src/providers/transport/http.ts";
import { localhost } from "./localhost-certificate.ts";
import { type RawServer, startRawServer } from "./raw-server.ts";

const opened: { stop(): Promise<void> }[] = [];
/** Longest time that an answer took to begin. */
let slowestMs = 0;
afterEach(async () => {
  for (const part of opened.splice(0)) await part.stop();
  slowestMs = 0;
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async function serve(
  answer: (socket: Socket, request: string) => void,
  { connectMs = 10_000, ...limits }: Partial<typeof UNLIMITED> & { readonly connectMs?: number } = {},
): Promise<{ server: RawServer; upstream: Upstream }> {
  const server = await startRawServer(answer);
  opened.push(server);
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const connections = { ...UNLIMITED, ...limits };
  return { server, upstream: connectUpstream({ baseUrl, allowPrivate: true, connectMs, connections }) };
}

async function post(
  upstream: Upstream,
  { body = "{}", idleMs = 10_000, ...options }: Partial<UpstreamRequest> = {},
): Promise<UpstreamResponse> {
  const { signal } = new AbortController();
  const beganMs = performance.now();
  const request = { path: "/x", headers: {}, body, signal, idleMs, ...options };
  const response = await upstream.post(request, "application/json");
  slowestMs = Math.max(slowestMs, performance.now() - beganMs);
  return response;
}

/** Long enough after an answer that its connection is used again, which is twice the time that answers take to begin. */
const rest = (): Promise<void> => delay(300 + 2 * slowestMs);

async function textOf(answer: UpstreamResponse): Promise<string> {
  return Buffer.concat([...(await answer.body())]).toString();
}

describe("a connection that is idle", () => {
  it("is closed when its server sends unsolicited bytes, and no request gets these as its answer", async () => {
    const { server, upstream } = await serve((socket) => socket.write(OK));
    expect(await textOf(await post(upstream))).toBe("ok");
    await delay(20);
    server.sockets[0]!.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong");
    await expect.poll(() => server.openCount()).toBe(0);
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it.each([
    ["has sent unsolicited bytes", (socket: Socket): void => void socket.write(OK.replace("ok", "no"))],
    ["has closed it", (socket: Socket): void => void socket.end()],
  ])("is not used when its server %s, and this is not noticed yet", async (_, meanwhile) => {
    const { server, upstream } = await serve((socket) => socket.write(OK));
    expect(await textOf(await post(upstream))).toBe("ok");
    await rest();
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
    await expect.poll(() => server.openCount(), { timeout: 1_900 }).toBe(0);
  });
});

describe("a connection that may be used again", () => {
  it("is not used at once, so that two requests in a row have two", async () => {
    const { server, upstream } = await serve((socket) => socket.write(OK));
    for (let count = 0; count < 2; count++) expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
    await rest();
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it("is not used for longer where answers take longer to begin, so that a stray answer shifts no others", async () => {
    const texts = async (upstream: Upstream, text: string): Promise<string> =>
      textOf(await post(upstream, { body: text }));
    const { server, upstream } = await serve((socket, request) => {
      const text = request.split("\r\n\r\n")[1]!;
      void delay(200).then(() => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`));
    });
    expect(await texts(upstream, "first")).toBe("first");
    await rest();
    // Comes while the next request is in flight: no client can distinguish it from the answer.
    const second = texts(upstream, "second");
    await delay(30);
    expect(server.sockets).toHaveLength(1);
    server.sockets[0]!.write(OK);
    expect(await second).toBe("ok");
    await delay(130);
    // Its own answer is still to come on that connection.
    expect(await texts(upstream, "third")).toBe("third");
    await rest();
    expect(await texts(upstream, "fourth")).toBe("fourth");
    expect(server.sockets[0]!.destroyed).toBe(true);
  });

  it("carries no more requests than it may", async () => {
    const { server, upstream } = await serve((socket) => socket.write(OK), { maxRequests: 2 });
    for (let count = 0; count < 5; count++) {
      expect(await textOf(await post(upstream))).toBe("ok");
      await rest();
    }
    expect(server.sockets).toHaveLength(3);
    expect(server.openCount()).toBe(1);
  });

  it("is closed when it is too old, but not while it carries a request", async () => {
    const { server, upstream } = await serve((socket) => void delay(900).then(() => socket.write(OK)), {
      maxAgeMs: 600,
    });
    expect(await textOf(await post(upstream))).toBe("ok");
    await expect.poll(() => server.openCount()).toBe(0);
    const quick = await serve((socket) => socket.write(OK), { maxAgeMs: 2_000 });
    expect(await textOf(await post(quick.upstream))).toBe("ok");
    expect(quick.server.openCount()).toBe(1);
    // Idle, it would be kept for half a minute.
    await expect.poll(() => quick.server.openCount()).toBe(0);
  });

  it("is none after an answer that began before its request was written", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {}).pause();
      socket.write(OK.slice(0, -1));
      // The end comes when the request has.
      void delay(100).then(() => socket.resume());
      let bytes = 0;
      socket.on("data", ({ length }) => {
        if ((bytes += length) > body.length) socket.write("k");
      });
    });
    const body = Buffer.alloc(20_000_000, " ");
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    opened.push({ stop: async () => void server.close() });
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1000 });
    expect(await textOf(await post(upstream, { body }))).toBe("ok");
    await expect.poll(() => sockets[0]!.destroyed).toBe(true);
  });

  it("belongs to one account where each has its own", async () => {
    const { server, upstream } = await serve((socket) => socket.write(OK), { perAccount: true });
    const ask = async (accountId: string): Promise<void> => {
      expect(await textOf(await post(upstream, { accountId }))).toBe("ok");
      await rest();
    };
    for (const accountId of ["a", "b", "a", "b"]) await ask(accountId);
    expect(server.sockets).toHaveLength(2);
    // Shared by requests without an account.
    const shared = await serve((socket) => socket.write(OK));
    for (const accountId of ["a", "b"]) {
      await textOf(await post(shared.upstream, { accountId }));
      await rest();
    }
    expect(shared.server.sockets).toHaveLength(1);
  });
});

describe("as many connections as there may be", () => {
  /** Answers each request when the test says so, in the order of their arrival. */
  async function serveHeld(limits: Parameters<typeof serve>[1]) {
    const held: { readonly text: string; answer(): void }[] = [];
    const { server, upstream } = await serve((socket, request) => {
      const text = request.split("\r\n\r\n")[1]!;
      held.push({
        text,
        answer: () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
      });
    }, limits);
    const ask = async (text: string, options: Partial<UpstreamRequest> = {}): Promise<string> =>
      textOf(await post(upstream, { body: text, ...options }));
    return { server, upstream, held, ask };
  }

  it("let further requests wait for one, the keys in turn", async () => {
    const { server, held, ask } = await serveHeld({ max: 1 });
    const first = ask("first", { keyFamilyId: "a" });
    await expect.poll(() => held.length).toBe(1);
    const others = ["a1", "a2", "a3", "b1"].map((text) => ask(text, { keyFamilyId: text[0] }));
    for (let count = 1; count <= 5; count++) {
      await expect.poll(() => held.length).toBe(count);
      held[count - 1]!.answer();
    }
    expect(await Promise.all([first, ...others])).toEqual(["first", "a1", "a2", "a3", "b1"]);
    expect(held.map(({ text }) => text)).toEqual(["first", "a1", "b1", "a2", "a3"]);
    expect(server.sockets).toHaveLength(1);
  });

  it("refuse a request that has waited for too long, and say nothing about the provider's health", async () => {
    const { held, ask } = await serveHeld({ max: 1, connectMs: 1_000 });
    const first = ask("first");
    await expect.poll(() => held.length).toBe(1);
    await expect(ask("second")).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "All connections to the upstream provider are in use.",
      transient: false,
      requestBound: true,
    });
    held[0]!.answer();
    expect(await first).toBe("first");
    const third = ask("third");
    await expect.poll(() => held.length).toBe(2);
    held[1]!.answer();
    expect(await third).toBe("third");
  });

  it("are not waited for by a caller who has left", async () => {
    const { held, ask } = await serveHeld({ max: 1 });
    const first = ask("first");
    await expect.poll(() => held.length).toBe(1);
    const caller = new AbortController();
    const second = ask("second", { signal: caller.signal });
    const third = ask("third");
    const gone = new Error("gone");
    caller.abort(gone);
    await expect(second).rejects.toBe(gone);
    held[0]!.answer();
    await expect.poll(() => held.length).toBe(2);
    held[1]!.answer();
    expect(await Promise.all([first, third])).toEqual(["first", "third"]);
    expect(held.map(({ text }) => text)).toEqual(["first", "third"]);
  });

  it("are there again when one breaks", async () => {
    const { server, held, ask } = await serveHeld({ max: 1 });
    const first = ask("first");
    await expect.poll(() => held.length).toBe(1);
    const second = ask("second");
    server.sockets[0]!.destroy();
    await expect(first).rejects.toMatchObject({ code: "upstream_unavailable" });
    await expect.poll(() => held.length).toBe(2);
    held[1]!.answer();
    expect(await second).toBe("second");
  });

  it("make room for an account that has none, at the cost of one that has no request", async () => {
    const { server, held, ask } = await serveHeld({ max: 2, perAccount: true });
    const [one, two] = [ask("one", { accountId: "a" }), ask("two", { accountId: "a" })];
    await expect.poll(() => held.length).toBe(2);
    const other = ask("other", { accountId: "b" });
    held[0]!.answer();
    expect(["one", "two"]).toContain(await Promise.race([one, two]));
    await expect.poll(() => held.length).toBe(3);
    expect(held[2]!.text).toBe("other");
    expect(server.openCount()).toBe(2);
    for (const each of held.slice(1)) each.answer();
    expect(await Promise.all([one, two, other])).toEqual(["one", "two", "other"]);
  });

  it("are closed by close() when the requests that wait for them are over", async () => {
    const { server, upstream, held, ask } = await serveHeld({ max: 1 });
    const first = ask("first");
    await expect.poll(() => held.length).toBe(1);
    const second = ask("second");
    const closed = upstream.close();
    held[0]!.answer();
    await expect.poll(() => held.length).toBe(2);
    held[1]!.answer();
    await closed;
    expect(await Promise.all([first, second])).toEqual(["first", "second"]);
    await expect.poll(() => server.openCount()).toBe(0);
  });
});

describe("a connection whose answer is not read", () => {
  it("is not silent: its provider is not to blame", async () => {
    const size = 8 * 1024 * 1024;
    const { upstream } = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size, "a"));
    });
    // Long enough for a busy machine, which must not come late to what has arrived.
    const answer = await post(upstream, { idleMs: 1_500 });
    await delay(2_500);
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

  it("sends nothing to a server with a certificate of no trusted authority", async () => {
    const { upstream, requests } = await serveTls((socket) => socket.write(OK));
    await expect(post(upstream)).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider's certificate is not valid.",
      transient: false,
    });
    expect(requests).toEqual([]);
  });
});

import { getEventListeners } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import {
  connectUpstream,
  MAX_RESPONSE_BYTES,
  type Upstream,
  type UpstreamResponse,
  type UpstreamRequest,
} from "../../../src/providers/transport/http.ts";
import { chunkOf, type RawServer, startRawServer } from "./raw-server.ts";

const opened: { stop(): Promise<void> }[] = [];
/** Longest time that an answer took to begin. */
let slowestMs = 0;
afterEach(async () => {
  for (const part of opened.splice(0)) await part.stop();
  slowestMs = 0;
});

/** A server with scripted answers, and connections to it. */
async function serve(
  answer: (socket: Socket, request: string) => void,
  path = "",
  readScheduler?: HeldTurns,
): Promise<{ server: RawServer; upstream: Upstream }> {
  const server = await startRawServer(answer);
  const upstream = connectUpstream({
    baseUrl: `http://127.0.0.1:${server.port}${path}`,
    allowPrivate: true,
    connectMs: 10_000,
    ...(readScheduler && { readScheduler }),
  });
  opened.push(server);
  return { server, upstream };
}

/** An event loop without time until the test gives it some. */
class HeldTurns {
  readonly held: (() => number)[] = [];

  take(_: string, work: () => number): void {
    this.held.push(work);
  }

  /** Gives the oldest part its turn once it has arrived, and answers how many bytes of it are read. */
  async next(): Promise<number> {
    while (this.held.length === 0) await nextTurn();
    return this.held.shift()!();
  }
}

async function post(upstream: Upstream, options: Partial<UpstreamRequest> = {}): Promise<UpstreamResponse> {
  const { signal } = new AbortController();
  const beganMs = performance.now();
  const request = { path: "/x", headers: {}, body: "{}", signal, idleMs: 10_000, ...options };
  const response = await upstream.post(request, "application/json");
  slowestMs = Math.max(slowestMs, performance.now() - beganMs);
  return response;
}

/** The whole body, read without a pause. */
async function textOf(answer: UpstreamResponse): Promise<string> {
  return Buffer.concat([...(await answer.body())]).toString();
}

/** Everything that is left of an answer, as it arrives. */
async function readAll(answer: UpstreamResponse): Promise<string> {
  const pieces: Buffer[] = [];
  for (let more = await answer.read(); more !== undefined; more = await answer.read()) pieces.push(...more);
  return Buffer.concat(pieces).toString();
}

/** Long enough after an answer that its connection is used again, which is twice the time that answers take to begin. */
const rest = (): Promise<void> => delay(300 + 2 * slowestMs);

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST_CHUNK = "0\r\n\r\n";
const whole = (body: string, head = "HTTP/1.1 200 OK"): string =>
  `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

describe("the progress of a large request", () => {
  const body = Buffer.alloc(4 * 1024 * 1024, "a");
  const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

  it("says that all of it is written when it is answered afterwards", async () => {
    const { upstream } = await serve((socket) => void socket.write(ANSWER));
    const progress = { unsent: false, isWritten: false };
    await textOf(await post(upstream, { body, progress }));
    expect(progress.isWritten).toBe(true);
  });

  it("does not say so when it is answered before", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.pause().write(ANSWER));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    opened.push({ stop: async () => void server.close() });
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 500 });
    const progress = { unsent: false, isWritten: true };
    const answer = await post(upstream, { body: Buffer.alloc(64 * 1024 * 1024), progress });
    expect(progress.isWritten).toBe(false);
    answer.abandon();
  });
});

describe("a request", () => {
  it("is posted below the base URL's path, with its headers and its length", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")), "/api/v1/");
    const answer = await post(upstream, { path: "/chat?x=1", headers: { "x-a": "b" }, body: '"é"' });
    expect([answer.status, await textOf(answer)]).toEqual([200, "ok"]);
    const [head, body] = server.requests[0]!.split("\r\n\r\n");
    expect(head!.split("\r\n")).toEqual(
      expect.arrayContaining(["POST /api/v1/chat?x=1 HTTP/1.1", "x-a: b", "content-length: 4"]),
    );
    expect(Buffer.from(body!, "latin1").toString()).toBe('"é"');
  });

  it("that is long arrives as it is, and leaves its connection for the next one", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    const body = Buffer.from(`"${"é".repeat(1_000_000)}"`);
    for (const each of [body, body.toString()]) {
      expect(await textOf(await post(upstream, { body: each }))).toBe("ok");
      await rest();
    }
    const bodies = server.requests.map((request) => Buffer.from(request.split("\r\n\r\n")[1]!, "latin1"));
    expect(bodies.map((each) => each.equals(body))).toEqual([true, true]);
    expect(server.requests[0]).toContain(`\r\ncontent-length: ${body.length}\r\n`);
    expect(server.sockets).toHaveLength(1);
  });

  it("that is long may be answered before it is read", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {}).pause();
      socket.write(whole("too long", "HTTP/1.1 413 Too Large"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const upstream = connectUpstream({ baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true, connectMs: 500 });
    opened.push({ stop: async () => void server.close() });
    const answer = await post(upstream, { body: Buffer.alloc(20_000_000, " ") });
    expect([answer.status, await textOf(answer)]).toEqual([413, "too long"]);
    answer.abandon();
  });

  it("does not wait for another, and neither gets the other's answer", async () => {
    const held: (() => void)[] = [];
    const { server, upstream } = await serve((socket, request) => {
      const reply = (): void => void socket.write(whole(request.includes("/first") ? "1" : "2"));
      if (held.push(reply) === 2) for (const answer of held.toReversed()) answer();
    });
    const answers = await Promise.all(["/first", "/second"].map((path) => post(upstream, { path })));
    expect(await Promise.all(answers.map(textOf))).toEqual(["1", "2"]);
    expect(server.sockets).toHaveLength(2);
  });
});

describe("an answer", () => {
  it("has its status and headers in before its body", async () => {
    const { server, upstream } = await serve((socket) =>
      socket.write(
        `HTTP/1.1 418 Teapot\r\nX-A: 1\r\nset-cookie: a\r\nset-cookie: b\r\ntransfer-encoding: chunked\r\n\r\n`,
      ),
    );
    const answer = await post(upstream);
    expect(answer).toMatchObject({ status: 418, headers: { "x-a": "1", "set-cookie": ["a", "b"] } });
    server.sockets[0]!.write(chunkOf("a") + LAST_CHUNK);
    expect(await readAll(answer)).toBe("a");
    expect(await answer.read()).toBeUndefined();
  });

  it("is read as it arrives, and has all that has arrived in one read", async () => {
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const answer = await post(upstream);
    expect(Buffer.concat([...(await answer.read())!]).toString()).toBe("a");
    const next = answer.read();
    server.sockets[0]!.write(chunkOf("b") + chunkOf("c") + chunkOf("d"));
    expect(Buffer.concat([...(await next)!]).toString()).toMatch(/^b/);
    server.sockets[0]!.write(LAST_CHUNK);
    expect(await readAll(answer)).toMatch(/d?$/);
  });

  it("may have no body", async () => {
    const { upstream } = await serve((socket) => socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
    const answer = await post(upstream);
    expect([answer.status, await textOf(answer)]).toEqual([204, ""]);
  });

  it("may come after informational ones", async () => {
    const { upstream } = await serve((socket) =>
      socket.write(`HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${whole("ok")}`),
    );
    const answer = await post(upstream);
    expect([answer.status, await textOf(answer), answer.headers.link]).toEqual([200, "ok", undefined]);
  });

  it.each([301, 302, 307, 308])("with status %i is not followed", async (status) => {
    const { server, upstream } = await serve((socket) =>
      socket.write(whole("", `HTTP/1.1 ${status} Moved\r\nlocation: /elsewhere`)),
    );
    const answer = await post(upstream);
    expect([answer.status, await textOf(answer)]).toEqual([status, ""]);
    expect(server.requests).toHaveLength(1);
  });

  it("may end with the connection when it has no length", async () => {
    const { upstream } = await serve((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nall of it"));
    expect(await readAll(await post(upstream))).toBe("all of it");
  });

  it("as large as an answer may be is read, and a larger one is not", async () => {
    const megabyte = Buffer.alloc(1024 * 1024, "a");
    const { server, upstream } = await serve((socket, request) => {
      const length = MAX_RESPONSE_BYTES + (request.includes("/larger") ? 1 : 0);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`);
      for (let sent = 0; sent < MAX_RESPONSE_BYTES; sent += megabyte.length) socket.write(megabyte);
      if (length > MAX_RESPONSE_BYTES) socket.write("a");
    });
    const text = await textOf(await post(upstream));
    expect(text).toHaveLength(MAX_RESPONSE_BYTES);
    await nextTurn();
    await expect((await post(upstream, { path: "/larger" })).body()).rejects.toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider's answer is larger than this gateway reads.",
    });
    await expect.poll(() => server.openCount()).toBe(0);
  });
});

describe("a slow reader", () => {
  it("trap 15: stalls the sender, and loses nothing", async () => {
    const total = 80 * 1024 * 1024;
    const piece = Buffer.alloc(256 * 1024, "a");
    const progress = { accepted: 0, drained: 0 };
    const { upstream } = await serve((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
      const send = (): void => {
        while (progress.accepted < total) {
          progress.accepted += piece.length;
          if (!socket.write(piece))
            return void socket.once("drain", () => {
              progress.drained++;
              send();
            });
        }
      };
      send();
    });
    const answer = await post(upstream);

    let [last, unchanged] = [-1, 0];
    const stalled = (): number => {
      unchanged = progress.accepted === last ? unchanged + 1 : 0;
      last = progress.accepted;
      return unchanged;
    };
    await expect.poll(stalled, { interval: 20 }).toBeGreaterThan(10);
    expect(progress.accepted).toBeLessThan(total / 2);

    const before = progress.drained;
    let received = 0;
    let largest = 0;
    for (let more = await answer.read(); more !== undefined; more = await answer.read()) {
      const size = more.reduce((sum, bytes) => sum + bytes.length, 0);
      received += size;
      largest = Math.max(largest, size);
    }
    expect(received).toBe(total);
    expect(progress.drained).toBeGreaterThan(before);
    expect(largest).toBeLessThan(1024 * 1024);
  });
});

describe("a failure", () => {
  const failing = async (
    answer: (socket: Socket) => void,
    options: Partial<UpstreamRequest> = {},
  ): Promise<Failure> => {
    const { upstream } = await serve(answer);
    const failure: unknown = await post(upstream, options)
      .then(readAll)
      .catch((reason: unknown) => reason);
    expect(failure).toBeInstanceOf(Failure);
    return failure as Failure;
  };

  it("is a refused connection", async () => {
    const { server, upstream } = await serve(() => {});
    await server.stop();
    await expect(post(upstream)).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider could not be reached.",
      transient: true,
    });
  });

  it("is a name that does not exist", async () => {
    const upstream = connectUpstream({ baseUrl: "http://nowhere.invalid", allowPrivate: true, connectMs: 5000 });
    await expect(post(upstream)).rejects.toMatchObject({ code: "upstream_unavailable" });
    await upstream.close();
  });

  it("is a connection that is not made in time: here the server never answers the TLS handshake", async () => {
    const server = await startRawServer(() => {});
    const upstream = connectUpstream({
      baseUrl: `https://127.0.0.1:${server.port}`,
      allowPrivate: true,
      connectMs: 100,
    });
    await expect(post(upstream)).rejects.toMatchObject({ code: "upstream_timeout", transient: true });
    await upstream.close();
    await server.stop();
  });

  it("is a TLS handshake that the server does not understand", async () => {
    const server = createServer((socket) =>
      socket.on("error", () => {}).once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const upstream = connectUpstream({
      baseUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
      allowPrivate: true,
      connectMs: 1000,
    });
    await expect(post(upstream)).rejects.toMatchObject({ code: "upstream_unavailable" });
    await upstream.close();
    await new Promise((resolve) => server.close(resolve));
  });

  it.each([
    [1024, false],
    [300 * 1024, true],
  ])("is the request's own where a connection is closed on a body of %i bytes: %s", async (bytes, requestBound) => {
    const { upstream } = await serve((socket) => socket.resetAndDestroy());
    const answer = post(upstream, { body: Buffer.alloc(bytes, "a") });
    await expect(answer).rejects.toMatchObject({ code: "upstream_unavailable", requestBound });
  });

  it.each<[string, (socket: Socket) => void]>([
    ["a reset before the answer", (socket) => socket.resetAndDestroy()],
    ["an end before the answer", (socket) => socket.end()],
    [
      "a reset in the middle of the headers",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nx-a", () => socket.resetAndDestroy()),
    ],
    ["an end in the middle of the headers", (socket) => socket.end("HTTP/1.1 200 OK\r\nx-a")],
  ])("is %s", async (_, answer) => {
    expect(await failing(answer)).toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider could not be reached.",
    });
  });

  it("comes after all that had arrived when the connection ended, however late that is read", async () => {
    const { server, upstream } = await serve((socket) => socket.end(CHUNKED + chunkOf("abc") + chunkOf("def")));
    const answer = await post(upstream);
    await expect.poll(() => server.sockets.every((socket) => socket.destroyed)).toBe(true);
    expect(Buffer.concat([...(await answer.read())!]).toString()).toBe("abcdef");
    await expect(answer.read()).rejects.toMatchObject({ code: "upstream_protocol" });
    await upstream.close();
  });

  it("is a reset in the middle of the body", async () => {
    expect(
      await failing((socket) => socket.write(CHUNKED + chunkOf("a"), () => socket.resetAndDestroy())),
    ).toMatchObject({
      code: expect.stringMatching(/^upstream_(?:unavailable|protocol)$/),
    });
  });

  it.each<[string, (socket: Socket) => void]>([
    ["between two chunks", (socket) => socket.end(CHUNKED + chunkOf("a"))],
    ["in the middle of a chunk", (socket) => socket.end(`${CHUNKED}ff\r\nabc`)],
    ["before its length is reached", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")],
  ])("trap 20: is an end of the connection %s", async (_, answer) => {
    expect(await failing(answer)).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider closed the connection before its answer was complete.",
    });
  });

  it.each([
    ["no HTTP", "hello\r\n\r\n"],
    ["a broken status line", "HTTP/1.1 abc\r\n\r\n"],
    ["a broken header", "HTTP/1.1 200 OK\r\nx a: b\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a broken chunk", `${CHUNKED}zz\r\n`],
    ["endless headers", `HTTP/1.1 200 OK\r\nx-a: ${"a".repeat(100_000)}\r\n\r\n`],
  ])("is an answer that has %s", async (_, text) => {
    const { server, upstream } = await serve((socket) => socket.write(text, "latin1"));
    await expect(post(upstream).then(readAll)).rejects.toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider's answer is not valid HTTP.",
    });
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("trap 16: is silence in the middle of an answer", async () => {
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    await expect(post(upstream, { idleMs: 200 }).then(readAll)).rejects.toMatchObject({ code: "upstream_timeout" });
    await expect.poll(() => server.openCount()).toBe(0);
  });
});

describe("a caller who leaves", () => {
  const gone = new Failure("cancelled", "The caller left.");

  it("before the request sends nothing", async () => {
    const { server, upstream } = await serve(() => {});
    await expect(post(upstream, { signal: AbortSignal.abort(gone) })).rejects.toBe(gone);
    expect(server.sockets).toHaveLength(0);
  });

  it("trap 14: before the answer closes the connection at once", async () => {
    const controller = new AbortController();
    const { server, upstream } = await serve(() => controller.abort(gone));
    await expect(post(upstream, { signal: controller.signal })).rejects.toBe(gone);
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("trap 14: during the answer closes the connection at once, and what was not read is gone", async () => {
    const controller = new AbortController();
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const answer = await post(upstream, { signal: controller.signal });
    await answer.read();
    const next = answer.read();
    controller.abort(gone);
    await expect(next).rejects.toBe(gone);
    await expect(answer.read()).rejects.toBe(gone);
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("while the whole body is collected closes the connection at once", async () => {
    const controller = new AbortController();
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const text = (await post(upstream, { signal: controller.signal })).body();
    controller.abort(gone);
    await expect(text).rejects.toBe(gone);
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("after the answer changes nothing", async () => {
    const controller = new AbortController();
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    expect(await textOf(await post(upstream, { signal: controller.signal }))).toBe("ok");
    controller.abort(gone);
    await rest();
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(1);
  });

  it("while the connection is being made sends nothing over it", async () => {
    const controller = new AbortController();
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    const answer = post(upstream, { path: "/left", signal: controller.signal });
    controller.abort(gone);
    await expect(answer).rejects.toBe(gone);
    expect(await textOf(await post(upstream, { path: "/stayed" }))).toBe("ok");
    await expect.poll(() => server.sockets.length).toBeGreaterThan(0);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatch(/^POST \/stayed /);
  });

  it("leaves nothing behind on the signal when the answer has ended or was abandoned", async () => {
    const { signal } = new AbortController();
    const { upstream } = await serve((socket) => socket.write(whole("ok")));
    await textOf(await post(upstream, { signal }));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    (await post(upstream, { signal })).abandon();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("while the connection is being made is released", async () => {
    const server = await startRawServer(() => {});
    const upstream = connectUpstream({
      baseUrl: `https://127.0.0.1:${server.port}`,
      allowPrivate: true,
      connectMs: 60_000,
    });
    const controller = new AbortController();
    const answer = post(upstream, { signal: controller.signal });
    await expect.poll(() => server.sockets.length).toBe(1);
    controller.abort(gone);
    await expect(answer).rejects.toBe(gone);
    await server.stop();
    await upstream.close();
  });
});

describe("a connection", () => {
  const postLater = async (upstream: Upstream): Promise<UpstreamResponse> => {
    await rest();
    return post(upstream);
  };

  it("is kept when the body is read to its end", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    for (let count = 0; count < 3; count++) expect(await textOf(await postLater(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(1);
  });

  it("is kept after complete() when the body ends soon", async () => {
    const { server, upstream } = await serve((socket, request) => {
      socket.write(request.includes("/first") ? CHUNKED + chunkOf("a") : whole("ok"));
    });
    const answer = await post(upstream, { path: "/first" });
    await answer.read();
    answer.complete();
    server.sockets[0]!.write(LAST_CHUNK);
    // Only a request over the first connection is answered by it: the others are made while its body's end is on its way.
    const served = async (): Promise<number> => {
      await textOf(await postLater(upstream));
      return server.requests.length - server.sockets.length;
    };
    await expect.poll(served).toBeGreaterThan(0);
    expect(server.sockets[0]!.destroyed).toBe(false);
  });

  it.each<[string, (socket: Socket) => void, number]>([
    ["the body does not end soon", () => {}, 8_000],
    ["the body goes on, at once", (socket) => socket.write(chunkOf("more")), 900],
  ])("is closed after complete() when %s", async (_, after, timeout) => {
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const answer = await post(upstream);
    await answer.read();
    answer.complete();
    after(server.sockets[0]!);
    await expect.poll(() => server.openCount(), { timeout }).toBe(0);
  });

  it("is not used again after complete() when the body goes on and ends in one piece", async () => {
    const { server, upstream } = await serve((socket, request) => {
      socket.write(request.includes("/first") ? CHUNKED + chunkOf("a") : whole("ok"));
    });
    const answer = await post(upstream, { path: "/first" });
    await answer.read();
    answer.complete();
    server.sockets[0]!.write(chunkOf("more") + LAST_CHUNK);
    await expect.poll(() => server.openCount()).toBe(0);
    expect(await textOf(await postLater(upstream))).toBe("ok");
  });

  it("is closed after abandon()", async () => {
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const answer = await post(upstream);
    answer.abandon();
    await expect.poll(() => server.openCount()).toBe(0);
    await expect(answer.read()).rejects.toMatchObject({ code: "cancelled" });
    const again = await post(upstream);
    expect(server.sockets).toHaveLength(2);
    again.abandon();
  });

  it("is kept after abandon() when the body has ended", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    const answer = await post(upstream);
    expect(await textOf(answer)).toBe("ok");
    answer.abandon();
    expect(await textOf(await postLater(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(1);
  });

  it("is made anew when the provider has closed the idle one", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await textOf(await post(upstream));
    server.sockets[0]!.end();
    await expect.poll(() => server.openCount()).toBe(0);
    expect(await textOf(await post(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(2);
  });

  it("is the one used last, when several are idle", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await Promise.all([1, 2, 3].map(async () => textOf(await post(upstream))));
    expect(server.sockets).toHaveLength(3);
    const requests = (): readonly number[] => server.sockets.map((socket) => socket.bytesRead);
    const before = requests();
    for (let count = 0; count < 3; count++) await textOf(await postLater(upstream));
    expect(requests().filter((bytes, index) => bytes > before[index]!)).toHaveLength(1);
  });

  it("is forgotten when the provider closes it while others are idle", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await Promise.all([1, 2, 3].map(async () => textOf(await post(upstream))));
    for (const socket of server.sockets.slice(0, 2)) socket.end();
    await expect.poll(() => server.openCount()).toBe(1);
    await Promise.all([1, 2].map(async () => textOf(await postLater(upstream))));
    expect(server.sockets).toHaveLength(4);
  });

  it("is free for the next request when one was refused before it was sent", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await textOf(await post(upstream));
    await rest();
    await expect(post(upstream, { headers: { "x-broken": "a\nb" } })).rejects.toMatchObject({
      code: "upstream_unavailable",
    });
    expect(await textOf(await postLater(upstream))).toBe("ok");
    expect(server.sockets).toHaveLength(1);
  });

  it("ends its answer after close(), and is closed then", async () => {
    const { server, upstream } = await serve((socket) => socket.write(CHUNKED + chunkOf("a")));
    const answer = await post(upstream);
    const closed = upstream.close();
    server.sockets[0]!.write(chunkOf("b") + LAST_CHUNK);
    expect(await readAll(answer)).toBe("ab");
    await closed;
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("is made for a request that comes after close(), and closed after it", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await upstream.close();
    expect(await textOf(await post(upstream))).toBe("ok");
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("is closed by close() when it is idle", async () => {
    const { server, upstream } = await serve((socket) => socket.write(whole("ok")));
    await textOf(await post(upstream));
    await upstream.close();
    await expect.poll(() => server.openCount()).toBe(0);
  });
});

describe("a private address is refused", () => {
  it.each([
    "https://127.0.0.1:1",
    "https://127.1",
    "https://2130706433",
    "https://0x7f.1",
    "https://0.0.0.0",
    "https://10.0.0.1",
    "https://100.64.0.1",
    "https://169.254.169.254",
    "https://172.31.255.255",
    "https://192.168.1.1",
    "https://224.0.0.1",
    "https://[::1]",
    "https://[::]",
    "https://[::ffff:127.0.0.1]",
    "https://[::ffff:a00:1]",
    "https://[64:ff9b::7f00:1]",
    "https://[fc00::1]",
    "https://[fe80::1]",
  ])("as %s", (baseUrl) => {
    expect(() => connectUpstream({ baseUrl, allowPrivate: false, connectMs: 100 })).toThrow("is a private address");
  });

  it("when a name leads to it, and nothing is sent", async () => {
    const server = await startRawServer((socket) => socket.write(whole("ok")));
    const upstream = connectUpstream({
      baseUrl: `https://localhost:${server.port}`,
      allowPrivate: false,
      connectMs: 1000,
    });
    await expect(post(upstream)).rejects.toMatchObject({
      code: "upstream_unavailable",
      transient: false,
      cause: { code: "ERR_PRIVATE_ADDRESS" },
    });
    expect(server.sockets).toHaveLength(0);
    await upstream.close();
    await server.stop();
  });

  it("but for those who allow it", async () => {
    const server = await startRawServer((socket) => socket.write(whole("ok")));
    const upstream = connectUpstream({
      baseUrl: `http://localhost:${server.port}`,
      allowPrivate: true,
      connectMs: 1000,
    });
    expect(await textOf(await post(upstream))).toBe("ok");
    await upstream.close();
    await server.stop();
  });

  it.each(["http://169.254.169.254", "http://[fd00:ec2::254]"])("as %s of a stored provider in any case", (baseUrl) => {
    const connect = (): unknown => connectUpstream({ baseUrl, allowPrivate: true, isStored: true, connectMs: 100 });
    expect(connect).toThrow("is an address of metadata");
  });

  it("and plain http with it", () => {
    const connect = (): unknown => connectUpstream({ baseUrl: "http://8.8.8.8", allowPrivate: false, connectMs: 100 });
    expect(connect).toThrow("is plain http");
  });

  it.each(["https://8.8.8.8", "https://172.32.0.1", "https://[2001:4860:4860::8888]", "https://example.com"])(
    "and %s is none",
    async (baseUrl) => {
      const upstream = connectUpstream({ baseUrl, allowPrivate: false, connectMs: 100 });
      await expect(upstream.close()).resolves.not.toThrow();
    },
  );
});

describe("an event loop that has too much to do", () => {
  /** An answer whose head is there and waits for its turn, what says more of it, and what breaks the connection. */
  const arrive = async (turns: HeldTurns, options: Partial<UpstreamRequest> = {}) => {
    let say: (text: string) => void = () => undefined;
    let end: () => void = () => undefined;
    const { upstream } = await serve(
      (socket) => {
        socket.write(CHUNKED);
        say = (text) => void socket.write(text);
        end = () => void socket.destroy();
      },
      "",
      turns,
    );
    const posted = post(upstream, options);
    await expect.poll(() => turns.held.length).toBe(1);
    return { posted, say: (text: string) => say(text), end: () => end() };
  };

  /** An answer whose head was delivered. */
  const begin = async (turns: HeldTurns, options: Partial<UpstreamRequest> = {}) => {
    const { posted, say } = await arrive(turns, options);
    await turns.next();
    return { answer: await posted, say };
  };

  it("delays an answer's head until its turn, too", async () => {
    const turns = new HeldTurns();
    const { posted, say } = await arrive(turns);
    say(chunkOf("first"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(turns.held.length).toBe(1);
    expect(await turns.next()).toBe("first".length);
    const answer = await posted;
    expect([answer.status, String(await answer.read())]).toEqual([200, "first"]);
    answer.abandon();
  });

  it("ends the wait for an answer's head at once when its caller has left", async () => {
    const turns = new HeldTurns();
    const caller = new AbortController();
    const { posted } = await arrive(turns, { signal: caller.signal });
    const gone = new Failure("cancelled", "The caller left.");
    caller.abort(gone);
    await expect(posted).rejects.toBe(gone);
    await turns.next();
  });

  it("delivers in its turn what had arrived before the connection broke", async () => {
    const turns = new HeldTurns();
    const { posted, say, end } = await arrive(turns);
    say(chunkOf("some"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    end();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await turns.next();
    const answer = await posted;
    expect(String(await answer.read())).toBe("some");
    await expect(answer.read()).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("delays a reader until its turn, and then gives it all that has arrived as one piece", async () => {
    const turns = new HeldTurns();
    const { answer, say } = await begin(turns);
    let read: string | undefined;
    const reading = answer.read().then((pieces) => (read = String(pieces)));
    say(chunkOf("one "));
    await expect.poll(() => turns.held.length).toBe(1);
    say(chunkOf("two "));
    say(`${chunkOf("three")}0\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([read, turns.held.length]).toEqual([undefined, 1]);
    expect(await turns.next()).toBe("one two three".length);
    expect(await reading).toBe("one two three");
    expect(await answer.read()).toBeUndefined();
    expect(turns.held).toEqual([]);
  });

  it("ends a reader's wait for its turn at once when its caller has left", async () => {
    const turns = new HeldTurns();
    const caller = new AbortController();
    const { answer, say } = await begin(turns, { signal: caller.signal });
    const reading = answer.read();
    say(chunkOf("some"));
    await expect.poll(() => turns.held.length).toBe(1);
    const gone = new Failure("cancelled", "The caller left.");
    caller.abort(gone);
    await expect(reading).rejects.toBe(gone);
    await turns.next();
    await expect(answer.read()).rejects.toBe(gone);
  });

  it("does not treat a late turn as the end of an answer", async () => {
    const turns = new HeldTurns();
    const { answer, say } = await begin(turns);
    const first = answer.read(200);
    say(chunkOf("one"));
    await expect.poll(() => turns.held.length).toBe(1);
    // Its time is up while it waits for its turn: what has arrived is there.
    expect(String(await first)).toBe("one");
    const second = answer.read();
    await turns.next();
    say(chunkOf("two"));
    await turns.next();
    expect(String(await second)).toBe("two");
    answer.abandon();
  });
});

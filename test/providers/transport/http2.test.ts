import { once } from "node:events";
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext, createServer as createTlsServer } from "node:tls";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  connectUpstream,
  UNLIMITED,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../../../src/providers/transport/http.ts";
import { localhost } from "./localhost-certificate.ts";

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

const EGRESS = { secureContext: createSecureContext({ ca: localhost.cert }) };

type Answer = (stream: ServerHttp2Stream, body: string) => unknown;

interface Provider {
  readonly port: number;
  /** Connections so far. */
  readonly sessions: readonly ServerHttp2Session[];
}

/** A provider with HTTP/2, whose streams are answered once their bodies are there. */
async function startProvider(answer: Answer, options: SecureServerOptions = {}): Promise<Provider> {
  const server: Http2SecureServer = createSecureServer({ ...localhost, ...options });
  const sessions: ServerHttp2Session[] = [];
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => undefined);
  });
  server.on("stream", (stream) => {
    let body = "";
    stream
      .on("error", () => undefined)
      .on("data", (bytes: Buffer) => (body += bytes.toString()))
      .on("end", () => answer(stream, body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sessions };
}

const [DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, ALTSVC, ORIGIN] = [0, 1, 4, 6, 7, 8, 10, 12];
/** Types of frames of the connection. */
const OF_CONNECTION: ReadonlySet<number> = new Set([SETTINGS, PING, GOAWAY, WINDOW_UPDATE, ORIGIN]);
const [END_STREAM, ACK, END_HEADERS] = [1, 1, 4];
/** Of HPACK's static table: `:status: 200`. */
const STATUS_200 = "\x88";
const PREFACE_BYTES = 24;
const FRAME_HEAD_BYTES = 9;

/** A frame of HTTP/2 (RFC 9113, 4.1) of a stream or of the connection, by its type. */
function frame(type: number, flags: number, payload: string, stream = 1): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.set([type, flags], 3);
  head.writeUInt32BE(OF_CONNECTION.has(type) ? 0 : stream, 5);
  return Buffer.concat([head, Buffer.from(payload, "latin1")]);
}

type Write = (bytes: Buffer) => void;

/** Answers with frames. `untilRead` resolves when the client has read all of them so far. */
type FramedAnswer = (write: Write, stream: number, untilRead: () => Promise<void>) => unknown;

/** A server that answers requests, which have no body, with frames of its own: Node joins small writes. Returns its port. */
async function startFrames(answer: FramedAnswer): Promise<number> {
  const server = createTlsServer({ ...localhost, ALPNProtocols: ["h2"] }, (socket) => {
    let rest = Buffer.alloc(0);
    let skipped = PREFACE_BYTES;
    const write: Write = (bytes) => void socket.write(bytes);
    let pong = (): void => undefined;
    const untilRead = (): Promise<void> => {
      write(frame(PING, 0, "12345678"));
      return new Promise((resolve) => (pong = resolve));
    };
    write(frame(SETTINGS, 0, ""));
    socket
      .on("error", () => undefined)
      .on("data", (bytes: Buffer) => {
        rest = Buffer.concat([rest, bytes]);
        while (rest.length >= skipped + FRAME_HEAD_BYTES) {
          const end = skipped + FRAME_HEAD_BYTES + rest.readUIntBE(skipped, 3);
          if (rest.length < end) return;
          const [type, flags] = rest.subarray(skipped + 3);
          const stream = rest.readUInt32BE(skipped + 5);
          rest = rest.subarray(end);
          skipped = 0;
          if (type === SETTINGS && flags === 0) write(frame(SETTINGS, ACK, ""));
          if (type === PING && flags === ACK) pong();
          if (type !== HEADERS) continue;
          write(frame(HEADERS, END_HEADERS, STATUS_200, stream));
          void answer(write, stream, untilRead);
        }
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

interface ConnectOptions extends Partial<typeof UNLIMITED> {
  readonly connectMs?: number;
}

function connectTo(port: number, { connectMs = 2000, ...limits }: ConnectOptions = {}): Upstream {
  const connections = { ...UNLIMITED, http2: true, ...limits };
  const baseUrl = `https://localhost:${port}/v1`;
  const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs, connections, egress: EGRESS });
  opened.push(() => void upstream.close());
  return upstream;
}

const post = (upstream: Upstream, options: Partial<UpstreamRequest> = {}): Promise<UpstreamResponse> => {
  const { signal } = new AbortController();
  return upstream.post({ path: "/x", headers: {}, body: "{}", signal, idleMs: 5000, ...options }, "application/json");
};

const textOf = async (response: UpstreamResponse): Promise<string> =>
  Buffer.concat([...(await response.body())]).toString();

const echo: Answer = (stream, body) => {
  stream.respond({ ":status": 200, "content-type": "text/plain" });
  stream.end(body);
};

/** Answers that end when the test says so. */
function held(): { readonly answer: Answer; readonly streams: ServerHttp2Stream[] } {
  const streams: ServerHttp2Stream[] = [];
  return { answer: (stream) => streams.push(stream), streams };
}

describe("calls over HTTP/2", () => {
  it("have the request's head and body, and the response's status, headers and body", async () => {
    let sent: unknown;
    const { port } = await startProvider((stream, body) => {
      sent = body;
      stream.respond({ ":status": 429, "retry-after": "7", "set-cookie": ["a=1", "b=2"] });
      stream.end("later");
    });
    const response = await post(connectTo(port), { headers: { "X-Api-Key": "k" }, body: "hello" });
    expect(response.status).toBe(429);
    expect(response.headers).toMatchObject({ "retry-after": "7", "set-cookie": ["a=1", "b=2"] });
    expect(response.headers[":status"]).toBeUndefined();
    expect(await textOf(response)).toBe("later");
    expect(sent).toBe("hello");
  });

  it("are those of the base URL, with the media type and headers in lower case", async () => {
    const heads: unknown[] = [];
    const { port, sessions } = await startProvider(echo);
    const upstream = connectTo(port);
    const first = post(upstream, { path: "/models?limit=1", method: "GET", headers: { "X-Api-Key": "k" }, body: "" });
    await expect.poll(() => sessions.length).toBe(1);
    sessions[0]!.on("stream", (_, headers) => heads.push(headers));
    await textOf(await first);
    await textOf(await post(upstream, { headers: { "X-Api-Key": "k" } }));
    expect(heads.at(-1)).toMatchObject({
      ":method": "POST",
      ":path": "/v1/x",
      ":authority": `localhost:${port}`,
      accept: "application/json",
      "x-api-key": "k",
    });
  });

  it("share a connection, up to 64 at once", async () => {
    const { answer, streams } = held();
    const { port, sessions } = await startProvider(answer);
    const upstream = connectTo(port);
    const calls = Array.from({ length: 65 }, (_, index) => post(upstream, { body: String(index) }));
    await expect.poll(() => streams.length).toBe(65);
    expect(sessions).toHaveLength(2);
    for (const stream of streams) echo(stream, "ok");
    for (const call of calls) expect(await textOf(await call)).toBe("ok");
  });

  it("are as many at once as the server allows", async () => {
    const { answer, streams } = held();
    const { port, sessions } = await startProvider(answer, { settings: { maxConcurrentStreams: 3 } });
    const upstream = connectTo(port);
    const calls = Array.from({ length: 7 }, () => post(upstream));
    await expect.poll(() => streams.length).toBe(7);
    expect(sessions).toHaveLength(3);
    for (const stream of streams) echo(stream, "ok");
    for (const call of calls) expect(await textOf(await call)).toBe("ok");
  });

  it("wait in turn where no connection has room, and fail after the time to connect", async () => {
    const { answer, streams } = held();
    const { port } = await startProvider(answer, { settings: { maxConcurrentStreams: 1 } });
    const upstream = connectTo(port, { max: 1 });
    const [first, second, third] = [post(upstream), post(upstream), post(upstream)];
    await expect.poll(() => streams.length).toBe(1);
    echo(streams[0]!, "one");
    expect(await textOf(await first)).toBe("one");
    await expect.poll(() => streams.length).toBe(2);
    await expect(third).rejects.toThrow("All connections to the upstream provider are in use.");
    echo(streams[1]!, "two");
    expect(await textOf(await second)).toBe("two");
  });

  it("do not wait for an answer that is not read", async () => {
    const large = Buffer.alloc(8 * 1024 * 1024, "x");
    const send: Answer = (stream, body) => {
      stream.respond({ ":status": 200 });
      stream.end(body === "large" ? large : "small");
    };
    // The server has all answers in memory.
    const { port, sessions } = await startProvider(send, { maxSessionMemory: 1000 });
    const upstream = connectTo(port);
    const unread = await Promise.all(Array.from({ length: 20 }, () => post(upstream, { body: "large" })));
    await delay(100);
    expect(await textOf(await post(upstream))).toBe("small");
    expect(sessions).toHaveLength(1);
    expect((await textOf(unread[0]!)).length).toBe(large.length);
    for (const response of unread) response.abandon();
  });

  it("that are aborted end their stream alone", async () => {
    const { answer, streams } = held();
    const { port, sessions } = await startProvider(answer);
    const upstream = connectTo(port);
    const abort = new AbortController();
    const [left, stays] = [post(upstream, { signal: abort.signal }), post(upstream)];
    await expect.poll(() => streams.length).toBe(2);
    const closed = once(streams[0]!, "close");
    abort.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    await closed;
    expect(streams[0]!.rstCode).toBe(constants.NGHTTP2_CANCEL);
    echo(streams[1]!, "ok");
    expect(await textOf(await stays)).toBe("ok");
    expect(sessions).toHaveLength(1);
  });

  it("get no answer of another, with callers that leave at any time", async () => {
    const { port } = await startProvider(async (stream, body) => {
      await delay(Math.random() * 5);
      if (stream.destroyed) return;
      stream.respond({ ":status": 200 });
      for (let piece = 0; piece < 5 && !stream.destroyed; piece++) {
        stream.write(`${body};`);
        if (piece % 2 === 0) await delay(Math.random() * 3);
      }
      stream.end();
    });
    const upstream = connectTo(port);
    /** Whether the answer is that of this call; undefined for one whose caller left. */
    const call = async (tag: string): Promise<boolean | undefined> => {
      const abort = new AbortController();
      if (Math.random() < 0.4) setTimeout(() => abort.abort(new Error("left")), Math.random() * 12);
      try {
        const text = await textOf(await post(upstream, { body: tag, signal: abort.signal }));
        return text === `${tag};`.repeat(5);
      } catch (error) {
        return (error as Error).message === "left" ? undefined : false;
      }
    };
    const own: (boolean | undefined)[] = [];
    for (let round = 0; round < 10; round++)
      own.push(...(await Promise.all(Array.from({ length: 100 }, (_, index) => call(`${round}-${index}`)))));
    expect(own.filter((isOwn) => isOwn === false)).toHaveLength(0);
    expect(own.filter((isOwn) => isOwn === true).length).toBeGreaterThan(400);
  });
});

describe("a connection of HTTP/2", () => {
  it("carries no new request after GOAWAY, and ends those in flight", async () => {
    const { answer, streams } = held();
    const { port, sessions } = await startProvider(answer);
    const upstream = connectTo(port);
    const first = post(upstream);
    await expect.poll(() => streams.length).toBe(1);
    sessions[0]!.goaway();
    await delay(50);
    const second = post(upstream);
    await expect.poll(() => streams.length).toBe(2);
    expect(sessions).toHaveLength(2);
    for (const stream of streams) echo(stream, "ok");
    expect(await textOf(await first)).toBe("ok");
    expect(await textOf(await second)).toBe("ok");
    await expect.poll(() => sessions[0]!.destroyed).toBe(true);
  });

  it("sends a request that the server refused unprocessed once more", async () => {
    let count = 0;
    const { port } = await startProvider((stream) => {
      count += 1;
      if (count % 2 === 1 || count > 2) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return echo(stream, "ok");
    });
    const upstream = connectTo(port);
    const served = { unsent: false };
    expect(await textOf(await post(upstream, { progress: served }))).toBe("ok");
    const progress = { unsent: false };
    await expect(post(upstream, { progress })).rejects.toThrow("The upstream provider could not be reached.");
    expect([count, served.unsent, progress.unsent]).toEqual([4, false, true]);
  });

  it("is closed at once when its server allows no requests", async () => {
    const { port, sessions } = await startProvider(echo, { settings: { maxConcurrentStreams: 0 } });
    await expect(post(connectTo(port))).rejects.toThrow("The upstream provider could not be reached.");
    expect(sessions).toHaveLength(1);
  });

  it("takes waiting requests when its server allows more", async () => {
    const { answer, streams } = held();
    const { port, sessions } = await startProvider(answer, { settings: { maxConcurrentStreams: 1 } });
    const upstream = connectTo(port, { max: 1 });
    const calls = [post(upstream), post(upstream)];
    await expect.poll(() => streams.length).toBe(1);
    sessions[0]!.settings({ maxConcurrentStreams: 2 });
    await expect.poll(() => streams.length).toBe(2);
    for (const stream of streams) echo(stream, "ok");
    for (const call of calls) expect(await textOf(await call)).toBe("ok");
  });

  it("of an account keeps those of others from waiting for it", async () => {
    const { answer, streams } = held();
    const { port } = await startProvider(answer, { settings: { maxConcurrentStreams: 2 } });
    const upstream = connectTo(port, { max: 1, perAccount: true });
    const first = post(upstream, { accountId: "one" });
    await expect.poll(() => streams.length).toBe(1);
    const other = post(upstream, { accountId: "two" });
    const second = post(upstream, { accountId: "one" });
    await expect.poll(() => streams.length).toBe(2);
    for (const stream of streams) echo(stream, "ok");
    for (const call of [first, second]) expect(await textOf(await call)).toBe("ok");
    // Its turn comes when no call of the first account is left.
    await expect.poll(() => streams.length).toBe(3);
    echo(streams[2]!, "ok");
    expect(await textOf(await other)).toBe("ok");
  });

  it("has no stream of a request whose answer came before its body was read", async () => {
    const server = createSecureServer({ ...localhost });
    const streams: ServerHttp2Stream[] = [];
    server.on("session", (session) => opened.push(() => session.destroy()));
    server.on("stream", (stream) => {
      stream.on("error", () => undefined).pause();
      streams.push(stream);
      stream.respond({ ":status": 413 }, { endStream: true });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    opened.push(() => server.close());
    const upstream = connectTo((server.address() as AddressInfo).port);
    const response = await post(upstream, { body: "x".repeat(8 * 1024 * 1024) });
    expect([response.status, await textOf(response)]).toEqual([413, ""]);
    await expect.poll(() => streams[0]!.closed).toBe(true);
  });

  it("loses nothing of an answer that is read after its server has closed it", async () => {
    const text = "x".repeat(200_000);
    const { port, sessions } = await startProvider((stream) => {
      stream.respond({ ":status": 200 });
      stream.end(text);
    });
    const response = await post(connectTo(port));
    const [first] = (await response.read())!;
    await delay(200);
    sessions[0]!.close();
    await expect.poll(() => sessions[0]!.destroyed).toBe(true);
    await delay(50);
    expect(first!.length + (await textOf(response)).length).toBe(text.length);
  });

  it.each([
    ["resets the stream", (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
    ["resets the stream without an error", (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_NO_ERROR)],
    ["closes the connection", (stream: ServerHttp2Stream) => stream.session!.destroy()],
  ])("whose server %s in the middle fails the answer after its bytes", async (_, cut) => {
    const { port } = await startProvider((stream) => {
      stream.respond({ ":status": 200, "content-length": "10" });
      stream.write("hello");
      setTimeout(() => cut(stream), 50);
    });
    const response = await post(connectTo(port));
    expect(Buffer.concat([...(await response.read())!]).toString()).toBe("hello");
    await expect(response.read()).rejects.toThrow("The upstream provider closed the connection before its answer");
  });

  it("is none where the server does not offer HTTP/2", async () => {
    const server = createTlsServer({ ...localhost, ALPNProtocols: ["http/1.1"] });
    server.on("tlsClientError", () => undefined).listen(0, "127.0.0.1");
    await once(server, "listening");
    opened.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    await expect(post(connectTo(port))).rejects.toThrow("The upstream provider does not offer HTTP/2.");
  });

  it("ends an answer that is silent for too long, not the others", async () => {
    const streams: ServerHttp2Stream[] = [];
    const { port, sessions } = await startProvider((stream) => {
      stream.respond({ ":status": 200 });
      stream.write("begun");
      streams.push(stream);
    });
    const upstream = connectTo(port);
    const silent = await post(upstream, { idleMs: 200 });
    const other = await post(upstream);
    await expect(textOf(silent)).rejects.toThrow("The upstream provider went silent");
    streams[1]!.end(" and ended");
    expect(await textOf(other)).toBe("begun and ended");
    expect(sessions).toHaveLength(1);
  });

  it("is closed when its server no longer answers", async () => {
    const { answer, streams } = held();
    const { port } = await startProvider(answer);
    let isCut = false;
    const relay = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const)
        from.on("data", (bytes) => !isCut && to.write(bytes)).on("error", () => to.destroy());
    });
    relay.listen(0, "127.0.0.1");
    await once(relay, "listening");
    opened.push(() => relay.close());
    const call = post(connectTo((relay.address() as AddressInfo).port, { connectMs: 1_000 }));
    await expect.poll(() => streams.length).toBe(1);
    isCut = true;
    await expect(call).rejects.toThrow("The upstream provider could not be reached.");
  });

  it("is closed when its server sends informational answers without end", async () => {
    const { port, sessions } = await startProvider((stream) => {
      for (let count = 0; count < 20; count++) stream.additionalHeaders({ ":status": 103 });
    });
    await expect(post(connectTo(port))).rejects.toThrow("The upstream provider's answer is not valid HTTP.");
    await expect.poll(() => sessions.every(({ destroyed }) => destroyed)).toBe(true);
  });

  it("is closed when its server sends answers byte by byte, and not for pauses between them", async () => {
    const bytes = (write: Write, count: number): void =>
      write(Buffer.concat(Array<Buffer>(count).fill(frame(DATA, 0, " "))));
    const fine = await startFrames((write) => bytes(write, 60_000));
    const paused = await startFrames(async (write, _, untilRead) => {
      bytes(write, 9_000);
      await untilRead();
      await delay(1_100);
      bytes(write, 9_000);
      write(frame(DATA, END_STREAM, ""));
    });
    const [broken, whole] = await Promise.allSettled(
      [fine, paused].map(async (port) => textOf(await post(connectTo(port), { body: "" }))),
    );
    expect(broken).toMatchObject({ reason: { message: "The upstream provider's answer is not valid HTTP." } });
    expect(whole).toMatchObject({ value: " ".repeat(18_000) });
  });

  it.each([
    ["GOAWAY frames", frame(GOAWAY, 0, "\x7f\xff\xff\xff\0\0\0\0"), 100],
    ["ALTSVC frames", frame(ALTSVC, 0, '\0\0h3=":1"'), 100],
    ["ORIGIN frames", frame(ORIGIN, 0, "\0\x09https://a"), 100],
    ["WINDOW_UPDATE frames", frame(WINDOW_UPDATE, 0, "\0\0\0\x01"), 100_000],
  ])("is closed when its server sends %s", async (_, one, count) => {
    const port = await startFrames((write) => write(Buffer.concat(Array<Buffer>(count).fill(one))));
    const answer = post(connectTo(port), { body: "" }).then(textOf);
    await expect(answer).rejects.toThrow("The upstream provider's answer is not valid HTTP.");
  });

  it("is closed when its server sends more than 48,000 pieces of 64 bytes in a second, within its windows", async () => {
    // All of them arrive within a second, however slow the machine is.
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const thousand = Buffer.concat(Array<Buffer>(1_000).fill(frame(DATA, 0, " ".repeat(64))));
    const port = await startFrames(async (write, _, untilRead) => {
      for (let count = 0; count < 60; count++) {
        write(thousand);
        await untilRead();
      }
      write(frame(DATA, END_STREAM, ""));
    });
    const answer = post(connectTo(port), { body: "" }).then(textOf);
    await expect(answer).rejects.toThrow("The upstream provider's answer is not valid HTTP.");
  });

  it("is closed when its server saves up what it may send beside its answers", async () => {
    const [answers, megabytes] = [300, 90];
    const updates = Buffer.concat(Array<Buffer>(80_000).fill(frame(WINDOW_UPDATE, 0, "\0\0\0\x01")));
    const port = await startFrames(async (write, stream) => {
      const isLast = stream > 2 * answers;
      for (let left = isLast ? megabytes : 0; left > 0; left--) {
        write(updates);
        await delay(5);
      }
      write(frame(DATA, END_STREAM, "", stream));
    });
    const upstream = connectTo(port);
    for (let count = 0; count < answers; count += 50)
      await Promise.all(Array.from({ length: 50 }, async () => textOf(await post(upstream, { body: "" }))));
    const flooded = post(upstream, { body: "" }).then(textOf);
    await expect(flooded).rejects.toThrow("The upstream provider's answer is not valid HTTP.");
  });

  it("lives with frames that a server needs beside its answers", async () => {
    const [ping, update] = [frame(PING, 0, "12345678"), frame(WINDOW_UPDATE, 0, "\0\0\0\x01")];
    const port = await startFrames((write) => {
      write(Buffer.concat(Array<Buffer>(5_000).fill(update)));
      for (let piece = 0; piece < 1_000; piece++) write(Buffer.concat([frame(DATA, 0, " ".repeat(200)), ping, update]));
      write(Buffer.concat([frame(GOAWAY, 0, "\x7f\xff\xff\xff\0\0\0\0"), frame(DATA, END_STREAM, "")]));
    });
    expect(await textOf(await post(connectTo(port), { body: "" }))).toBe(" ".repeat(200_000));
  });

  it("carries as many requests as it may, and is closed with its upstream", async () => {
    const { port, sessions } = await startProvider(echo);
    const upstream = connectTo(port, { maxRequests: 2 });
    for (let count = 0; count < 4; count++) expect(await textOf(await post(upstream, { body: "ok" }))).toBe("ok");
    expect(sessions).toHaveLength(2);
    await upstream.close();
    await expect.poll(() => sessions.every(({ destroyed }) => destroyed)).toBe(true);
  });
});

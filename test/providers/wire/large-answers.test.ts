import { once } from "node:events";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { Emit } from "../../../src/core/provider.ts";
import { connectUpstream, UNLIMITED, type Upstream } from "../../../src/providers/transport/http.ts";
import {
  type DialectCall,
  fetchCount,
  fetchStream,
  fetchWhole,
  type StreamReader,
} from "../../../src/providers/wire/response.ts";
import { type AnswerHold, type AnswerOwner, PATIENCE_MS } from "../../../src/scheduling/answer-hold.ts";
import { AnswerMemory } from "../../../src/scheduling/answer-memory.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { localhost } from "../transport/localhost-certificate.ts";
import { type RawServer, startRawServer } from "../transport/raw-server.ts";

const MIB = 1024 * 1024;
const IDLE_MS = 300;
const PICTURE = "A".repeat(4 * MIB);

let servers: RawServer[];
let clock: FakeClock;
let memory: AnswerMemory;
/** Of all answers, in their order. */
let holds: AnswerHold[];
let paused: number;
beforeEach(() => {
  servers = [];
  clock = new FakeClock();
  memory = new AnswerMemory({ key: MIB, account: 40 * MIB, provider: 40 * MIB, process: 40 * MIB }, clock);
  holds = [];
  paused = 0;
});
afterEach(async () => {
  for (const server of servers) await server.stop();
});

/** An upstream that answers each request with this head and body. */
async function serve(type: string, body: string): Promise<Upstream> {
  const server = await startRawServer((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
  );
  servers.push(server);
  return connectUpstream({ baseUrl: `http://127.0.0.1:${server.port}`, allowPrivate: true, connectMs: 5_000 });
}

function callOf(key: string, signal = new AbortController().signal): DialectCall {
  return {
    path: "/x",
    headers: {},
    body: "{}",
    signal,
    idleMs: IDLE_MS,
    progress: { unsent: true, paused: () => void (paused += 1) },
    share: {
      work: (run) => run(),
      openAnswer(source) {
        const hold = memory.open({ ...ownerOf(key), ...source });
        holds.push(hold);
        return hold;
      },
      keepAnswers: () => undefined,
    },
    toFailure: () => new Failure("internal", "unexpected"),
  };
}

function ownerOf(key: string): AnswerOwner {
  return { keyFamilyId: key, accountId: key, provider: {}, abandon: () => undefined, leave: () => undefined };
}

/** Fills the memory of a key. */
function fill(key: string): AnswerHold {
  const hold = memory.open(ownerOf(key));
  expect(hold.take(40 * MIB, new AbortController().signal)).toBeUndefined();
  return hold;
}

function free(hold: AnswerHold): void {
  hold.read();
  hold.sent();
}

const bytesSent = (): number => {
  const [socket] = servers[0]!.sockets;
  return socket!.bytesWritten - socket!.writableLength;
};

/** Emits the length of each event's data. */
function reader(): StreamReader {
  let complete = false;
  return {
    get complete() {
      return complete;
    },
    read({ data }, out) {
      if (data === "end") complete = true;
      else out.push(deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: String(data.length) }));
    },
    end: () => undefined,
  };
}

const EVENTS = `data: first\n\ndata: ${PICTURE}\n\ndata: last\n\ndata: end\n\n`;

/** The kinds of answers: their media type and body, and how they are read. */
const kinds: [string, string, string, (upstream: Upstream, call: DialectCall, emit: Emit) => Promise<unknown>][] = [
  [
    "a stream",
    "text/event-stream",
    EVENTS,
    (upstream, call, emit) => fetchStream(upstream, call, { reader: reader(), whole: () => [], emit }),
  ],
  [
    "a whole answer",
    "application/json",
    `{"b64":"${PICTURE}"}`,
    (upstream, call) => fetchWhole(upstream, call, () => 0),
  ],
];

describe.each(kinds)("the large part of %s", (_, type, body, read) => {
  it("is not read while there is no memory for it, for longer than a provider may be silent", async () => {
    const upstream = await serve(type, body);
    const full = fill("k");
    const reading = read(upstream, callOf("k"), () => undefined);
    await expect.poll(() => memory.waiting, { timeout: 5_000 }).toBe(1);
    await delay(3 * IDLE_MS);
    expect(paused).toBe(1);
    expect(memory.waiting).toBe(1);
    free(full);
    await reading;
    for (const hold of holds) hold.sent();
    expect([memory.bytes, memory.waiting]).toEqual([0, 0]);
  });

  it("counts while it is read, and does not wait for other keys", async () => {
    const upstream = await serve(type, body);
    fill("other");
    let mostBytes = 0;
    await read(upstream, callOf("k"), () => void (mostBytes = Math.max(mostBytes, memory.bytes)));
    expect(Math.max(mostBytes, memory.bytes)).toBeGreaterThanOrEqual(43 * MIB);
    expect(holds).toHaveLength(1);
  });

  it("ends with its time limit while it waits", async () => {
    const upstream = await serve(type, body);
    fill("k");
    const limit = new AbortController();
    const reading = read(upstream, callOf("k", limit.signal), () => undefined);
    await expect.poll(() => memory.waiting, { timeout: 5_000 }).toBe(1);
    limit.abort(new Failure("upstream_timeout", "too late"));
    await expect(reading).rejects.toMatchObject({ code: "upstream_timeout" });
    for (const hold of holds) hold.sent();
    expect([memory.bytes, memory.waiting]).toEqual([40 * MIB, 0]);
  });
});

describe("a stream with a large event", () => {
  it("stalls its provider while it waits, after the events before it", async () => {
    const upstream = await serve("text/event-stream", EVENTS.replace(PICTURE, "A".repeat(24 * MIB)));
    const full = fill("k");
    const emitted: number[] = [];
    const emit = (batch: readonly CompletionChunk[]): undefined => void emitted.push(batch.length);
    const reading = fetchStream(upstream, callOf("k"), { reader: reader(), whole: () => [], emit });
    await expect.poll(() => memory.waiting, { timeout: 5_000 }).toBe(1);
    expect(emitted).toEqual([1]);
    await delay(IDLE_MS);
    expect(bytesSent()).toBeLessThan(24 * MIB);
    free(full);
    await reading;
  });

  it("frees its memory once the event is emitted and the caller has room", async () => {
    const upstream = await serve("text/event-stream", EVENTS);
    const room = Promise.withResolvers<void>();
    const emitted: Promise<void>[] = [];
    const emit = (): Promise<void> | undefined => {
      if (memory.bytes === 0) return undefined;
      emitted.push(room.promise);
      return room.promise;
    };
    const reading = fetchStream(upstream, callOf("k"), { reader: reader(), whole: () => [], emit });
    await expect.poll(() => emitted.length, { timeout: 5_000 }).toBe(1);
    expect(memory.bytes).toBeGreaterThanOrEqual(3.5 * MIB);
    room.resolve();
    await reading;
    expect(memory.bytes).toBe(0);
  });
});

describe("a stream of small events", () => {
  it("counts nothing, and never waits", async () => {
    const small = `data: ${"a".repeat(20_000)}\n\n`;
    const upstream = await serve("text/event-stream", `${small.repeat(200)}data: end\n\n`);
    fill("k");
    await fetchStream(upstream, callOf("k"), { reader: reader(), whole: () => [], emit: () => undefined });
    expect(holds).toEqual([]);
  });
});

describe("a large answer over HTTP/2", () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  /** An upstream that answers as `answer` does. */
  async function serveHttp2(answer: (stream: ServerHttp2Stream) => void): Promise<Upstream> {
    const server = createSecureServer(localhost, (_, response) => {
      response.stream.on("error", () => undefined).respond({ ":status": 200, "content-type": "application/json" });
      answer(response.stream);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const upstream = connectUpstream({
      baseUrl: `https://localhost:${(server.address() as AddressInfo).port}`,
      allowPrivate: true,
      connectMs: 5_000,
      connections: { ...UNLIMITED, http2: true },
      egress: { secureContext: createSecureContext({ ca: localhost.cert }) },
    });
    closing.push(() => {
      server.close();
      void upstream.close();
    });
    return upstream;
  }

  it("that ended while it waited is read, and asks for memory once", async () => {
    // More than two turns, of which the second fits into the window of the stream.
    const body = `{"b64":"${"A".repeat(630_000)}"}`;
    const upstream = await serveHttp2((stream) => stream.end(body));
    const full = fill("k");
    const response = await upstream.post(callOf("k"), "application/json");
    let asked = 0;
    const pieces = await response.body({
      take() {
        asked += 1;
        return new Promise(() => undefined);
      },
      pause: () => undefined,
      resume: () => undefined,
    });
    expect([Buffer.concat([...pieces]).length, asked]).toEqual([body.length, 1]);
    expect(await fetchWhole(upstream, callOf("k"), () => "read")).toBe("read");
    expect([paused, memory.waiting]).toEqual([1, 0]);
    for (const hold of [...holds, full]) free(hold);
    expect([memory.bytes, memory.waiting]).toEqual([0, 0]);
  });

  it("whose connection is lost while it waits fails, and keeps no other one waiting", async () => {
    let cut = (): void => undefined;
    const upstream = await serveHttp2((stream) => {
      cut = () => stream.session!.destroy();
      stream.write("A".repeat(400_000));
    });
    const full = fill("k");
    const reading = fetchWhole(upstream, callOf("k"), () => 0);
    await expect.poll(() => memory.waiting, { timeout: 5_000 }).toBe(1);
    const next = memory.open(ownerOf("k"));
    const waiting = next.take(MIB, new AbortController().signal);
    cut();
    await expect(reading).rejects.toThrow("closed the connection before its answer was complete");
    expect(memory.waiting).toBe(1);
    free(full);
    await waiting;
    for (const hold of [...holds, next]) free(hold);
    expect([memory.bytes, memory.waiting]).toEqual([0, 0]);
  });
});

describe("a stream that fails", () => {
  it("has nothing in memory, also of what is kept for the whole answer", async () => {
    const upstream = await serve("text/event-stream", EVENTS.replace("data: end", "data: broken"));
    const call = callOf("k");
    const { openAnswer } = call.share!;
    let kept = 0;
    const keep: typeof openAnswer = (source) => {
      const hold = openAnswer(source)! as AnswerHold;
      hold.keep();
      return hold;
    };
    const failing: StreamReader = {
      complete: false,
      read: ({ data }, out) => {
        if (data === "broken") throw new Failure("upstream_unavailable", "broken");
        out.push(deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: data }));
      },
      end: () => undefined,
    };
    const reading = fetchStream(
      upstream,
      { ...call, share: { ...call.share!, openAnswer: keep } },
      { reader: failing, whole: () => [], emit: () => void (kept = Math.max(kept, memory.bytes)) },
    );
    await expect(reading).rejects.toThrow("broken");
    expect(kept).toBeGreaterThanOrEqual(3.5 * MIB);
    expect(memory.bytes).toBe(0);
  });
});

describe("the large answer of a provider that stalls", () => {
  it.each([
    ["a whole answer", "application/json", kinds[1]![3]],
    ["a stream", "text/event-stream", kinds[0]![3]],
  ])("ends as %s while another key waits for memory", async (_, type, read) => {
    const server = await startRawServer((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n\r\ndata: ${"A".repeat(3 * MIB)}`),
    );
    servers.push(server);
    const upstream = connectUpstream({
      baseUrl: `http://127.0.0.1:${server.port}`,
      allowPrivate: true,
      connectMs: 5_000,
    });
    const reading = read(upstream, { ...callOf("k"), idleMs: 60_000 }, () => undefined);
    reading.catch(() => undefined);
    await expect.poll(() => memory.bytes, { timeout: 5_000 }).toBeGreaterThanOrEqual(3 * MIB);
    fill("other").pause();
    const waiting = memory.open(ownerOf("third"));
    const room = waiting.take(4 * MIB, new AbortController().signal);
    clock.advance(PATIENCE_MS);
    await expect(reading).rejects.toMatchObject({ code: "upstream_timeout" });
    expect(memory.ended).toBeGreaterThanOrEqual(1);
    await room;
  });
});

describe("a count of tokens", () => {
  it("is not read beyond the size that a count has", async () => {
    const upstream = await serve("application/json", `{"input_tokens":1,"more":"${"A".repeat(70_000)}"}`);
    const { share: _, ...call } = callOf("k");
    await expect(fetchCount(upstream, call, "input_tokens")).rejects.toThrow("larger than this gateway reads");
    const short = await serve("application/json", `{"input_tokens":1,"more":"${"A".repeat(7_000)}"}`);
    expect(await fetchCount(short, call, "input_tokens")).toBe(1);
  });
});

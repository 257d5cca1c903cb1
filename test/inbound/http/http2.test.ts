import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import type { ClientHttp2Session, OutgoingHttpHeaders } from "node:http2";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { create } from "@bufbuild/protobuf";
import { ListModelsResponseSchema, type Model, ModelSchema } from "../../../gen/parley/v1/model_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { createDocuments } from "../../../src/inbound/http/documents.ts";
import { type HttpServer, startHttpServer } from "../../../src/inbound/http/server.ts";
import type { GrpcOnHttp } from "../../../src/inbound/http2/shared-port.ts";
import type { EdgeServices, KeyPrincipal, Refusal } from "../../../src/inbound/services.ts";
import {
  dataFrame,
  frame,
  headerBlock,
  headersFrame,
  INITIAL_WINDOW_SIZE,
  RawHttp2,
  resetStream,
  TYPE,
  windowUpdate,
} from "../../faults/hostile/raw-http2.ts";
import { anyConnections, ROOMY_BYTES, roomyAdmission } from "../../support/admission.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { answerOf, askHttp2, connectHttp2 } from "../../support/http2-client.ts";
import { idleServices } from "../../support/idle-services.ts";

/** Interval of the checks of each connection. */
const LOOK_MS = 200;
const MIB = 1024 * 1024;
/** What a key may leave unread. */
const KEY_BYTES = 8 * MIB;
const never = (): never => expect.fail("nothing is completed here");

let clock: FakeClock;
let server: HttpServer;
let calls: Calls;
const refusals: Refusal[] = [];
/** Keys whose look-up does not end. */
let asked: number;
/** Lists of models that were asked for, and what they wait for. */
let lists: number;
let listing: Promise<void>;
let models: Model[];
/** What the server does at the limit of connections. */
let closeIdle: () => void;

/** A server over plain TCP with HTTP/2: no gRPC is called here. */
beforeEach(async () => {
  clock = new FakeClock();
  calls = new Calls(clock);
  refusals.length = asked = lists = 0;
  listing = Promise.resolve();
  models = [];
  const principal = {
    keyId: "key_1",
    keyFamilyId: "key_1",
    accountId: "acc_1",
    limits: NO_LIMITS,
    accountLimits: NO_LIMITS,
  } as unknown as KeyPrincipal;
  const services: Partial<EdgeServices> = {
    models: {
      async list() {
        lists += 1;
        await listing;
        return models;
      },
      page: async () => create(ListModelsResponseSchema, { models }),
      get: never,
    },
    authenticate({ authorization }) {
      if (authorization === "Bearer good") return Promise.resolve(principal);
      if (authorization !== "Bearer pending")
        return Promise.reject(new Failure("unauthenticated", "The key is not valid."));
      asked += 1;
      return new Promise(() => undefined);
    },
    limitsOf: () => undefined as never,
    calls,
    admission: roomyAdmission(clock, undefined, { ...ROOMY_BYTES, key: KEY_BYTES }),
    connections: Object.assign(anyConnections(), { onFull: (close: () => void) => void (closeIdle = close) }),
    clock,
    refused: (refusal) => void refusals.push(refusal),
  };
  const grpc: GrpcOnHttp = {
    maxConnectionAgeMs: Infinity,
    guardStream: never,
    guardedBy: () => undefined,
    serve: never,
  };
  server = await startHttpServer(idleServices(services), {
    host: "127.0.0.1",
    port: 0,
    corsOrigins: [],
    documents: createDocuments(new Map([["large.gz", Buffer.alloc(8 * 1024 * 1024)]])),
    stallMs: 300,
    grpc,
  });
  onTestFinished(() => server.close());
});

const CHAT = { ":method": "POST", ":path": "/v1/chat/completions", "content-type": "application/json" };
const WITH_KEY = { ...CHAT, authorization: "Bearer good" };
const open = (): ClientHttp2Session => connectHttp2(server.port);

/** Sends a beginning of a body, and waits until the server reads it. */
async function begin(session: ClientHttp2Session, more: OutgoingHttpHeaders = {}) {
  const stream = session.request({ ...WITH_KEY, ...more });
  stream.write('{"model":');
  await expect.poll(() => calls.active).toBe(1);
  return stream;
}

const PSEUDO: [string, string][] = [
  [":scheme", "http"],
  [":authority", "parley.example"],
];
const BLOCK = headerBlock([...PSEUDO, ...Object.entries(WITH_KEY)]);
const HEALTH = headerBlock([...PSEUDO, [":path", "/healthz"], [":method", "GET"]]);

/** A raw connection whose SETTINGS are exchanged. */
async function beginRaw(): Promise<RawHttp2> {
  const raw = new RawHttp2(server.port).hello();
  onTestFinished(() => raw.close());
  await expect.poll(() => raw.arrived.some(({ type }) => type === TYPE.settings)).toBe(true);
  return raw;
}

/** Lets the time pass in steps of the checks. */
function pass(ms: number): void {
  for (let left = ms; left > 0; left -= LOOK_MS) clock.advance(LOOK_MS);
}

describe("a request of HTTP/2", () => {
  it.each([
    ["of unknown length", {}],
    ["of a declared length", { "content-length": 1_000_000 }],
  ])("whose body %s comes too slowly gets 408, and its connection serves others", async (_, more) => {
    const session = open();
    const stream = await begin(session, more);
    const answer = answerOf(stream);
    pass(5_000);
    expect(stream.closed).toBe(false);
    pass(60_000);
    expect(await answer).toMatchObject({ status: 408, text: expect.stringContaining("did not arrive in time") });
    await expect.poll(() => calls.active).toBe(0);
    expect(await askHttp2(session, { ":path": "/healthz" })).toMatchObject({ status: 200 });
  });

  it("whose body is cut off is never taken for a whole one", async () => {
    const session = open();
    const stream = session.request(WITH_KEY).on("error", () => undefined);
    stream.write('{"model":"x","messages":[]}');
    await expect.poll(() => calls.active).toBe(1);
    stream.close(8);
    await expect.poll(() => calls.active).toBe(0);
    expect(refusals.filter(({ failure }) => failure.code !== "cancelled")).toEqual([]);
  });

  it.each(["GET", "HEAD"])("with %s that is reset before it is refused leaves no call behind", async (method) => {
    const { promise, reject } = Promise.withResolvers<void>();
    listing = promise;
    const session = open();
    const stream = session.request({ ":method": method, ":path": "/v1/models", authorization: "Bearer good" });
    await expect.poll(() => lists).toBe(1);
    expect(calls.active).toBe(1);
    stream.close(8);
    // The server has read the reset when it answers.
    await new Promise((answered) => session.ping(answered));
    reject(new Failure("overloaded", "There is no list."));
    await expect.poll(() => calls.active).toBe(0);
  });

  it("that is refused may go on for a second, and is then closed without an error", async () => {
    const session = open();
    const stream = session.request(CHAT);
    stream.write("x");
    const answer = answerOf(stream);
    await once(stream, "response");
    await vi.waitFor(
      () => {
        pass(LOOK_MS);
        expect(stream.closed).toBe(true);
      },
      { timeout: 5000 },
    );
    expect(await answer).toMatchObject({ status: 401, resetCode: 0 });
  });

  it("whose answer is not read is closed, and another one of the connection is not", async () => {
    const session = open();
    const unread = session.request({ ":path": "/proto/large.gz" }).on("error", () => undefined);
    await once(unread, "response");
    await vi.waitFor(
      () => {
        pass(LOOK_MS);
        expect(unread.rstCode).not.toBe(0);
      },
      { timeout: 5000 },
    );
    expect(await askHttp2(session, { ":path": "/healthz" })).toMatchObject({ status: 200 });
  });

  it("whose answer is not read is closed although its connection sends PINGs, and one that is read slowly is not", async () => {
    const raw = new RawHttp2(server.port).hello([[INITIAL_WINDOW_SIZE, 0]]);
    onTestFinished(() => raw.close());
    const file = headerBlock([...PSEUDO, [":path", "/proto/large.gz"], [":method", "GET"]]);
    raw.write(Buffer.concat([headersFrame(1, file, "ends"), headersFrame(3, file, "ends")]));
    const answered = (): number => raw.arrived.filter(({ type }) => type === TYPE.headers).length;
    await expect.poll(answered).toBe(2);
    const resets = (): number[] => raw.arrived.filter(({ type }) => type === TYPE.reset).map(({ stream }) => stream);
    let acknowledged = 0;
    for (let turn = 0; turn < 40; turn++) {
      pass(LOOK_MS);
      // More than a write of the slow one.
      raw.write(
        Buffer.concat([frame({ type: TYPE.ping }, Buffer.alloc(8)), windowUpdate(3, 70_000), windowUpdate(0, 70_000)]),
      );
      acknowledged += 1;
      await expect.poll(() => raw.arrived.filter(({ type }) => type === TYPE.ping).length).toBe(acknowledged);
    }
    expect(resets()).toEqual([1]);
  });

  it("is not closed when its caller read while the event loop was busy", async () => {
    const raw = new RawHttp2(server.port).hello([[INITIAL_WINDOW_SIZE, 0]]);
    onTestFinished(() => raw.close());
    raw.write(headersFrame(1, HEALTH, "ends"));
    await expect.poll(() => raw.arrived.some(({ type }) => type === TYPE.headers)).toBe(true);
    pass(LOOK_MS);
    await raw.send(windowUpdate(1, 1_000));
    pass(100 * LOOK_MS);
    await expect.poll(() => raw.arrived.some(({ type, flags }) => type === TYPE.data && flags === 1)).toBe(true);
    expect(raw.arrived.some(({ type }) => type === TYPE.reset)).toBe(false);
  });

  it("is answered with one frame of data, which ends the stream", async () => {
    const raw = await beginRaw();
    raw.write(headersFrame(1, HEALTH, "ends"));
    const frames = () => raw.arrived.filter(({ type, stream }) => type === TYPE.data && stream === 1);
    await expect.poll(() => frames().at(-1)?.flags).toBe(1);
    expect(frames()).toHaveLength(1);
  });

  it("may have headers of 16 KiB", async () => {
    const sent = (bytes: number) => askHttp2(open(), { ":path": "/healthz", "x-long": "a".repeat(bytes) });
    expect(await sent(15 * 1024)).toMatchObject({ status: 200 });
    expect((await sent(17 * 1024)).status).not.toBe(200);
  });

  it("with CONNECT is refused", async () => {
    const connect = { ":method": "CONNECT", ":authority": "a.example:443" };
    expect(await askHttp2(open(), connect)).toMatchObject({ status: 405 });
  });
});

describe("a request of HTTP/2 is served only as it should be", () => {
  /** HPACK of `:status: 200`. */
  const SERVED = 0x88;
  type Fields = readonly (readonly [name: string, value: string])[];
  const request: Fields = [...PSEUDO, [":path", "/healthz"], [":method", "GET"]];
  const without = (name: string): Fields => request.filter((field) => field[0] !== name);
  const withOther = (name: string, value: string): Fields => [...without(name), [name, value]];

  async function isServed(fields: Fields): Promise<boolean> {
    const raw = await beginRaw();
    raw.write(headersFrame(1, headerBlock(fields), "ends"));
    const answered = () => raw.arrived.filter(({ stream, type }) => stream === 1 && type !== TYPE.data);
    await expect.poll(() => answered().length).toBe(1);
    const [answer] = answered();
    return answer!.type === TYPE.headers && answer!.payload[0] === SERVED;
  }

  it.each<[what: string, fields: Fields]>([
    ["a host that differs from the authority", [...request, ["host", "other.example"]]],
    ["two authorities", [...request, [":authority", "other.example"]]],
    ["neither authority nor host", without(":authority")],
    ["a user in its authority", withOther(":authority", "user@parley.example")],
    ["an absolute path", withOther(":path", "http://parley.example/healthz")],
    ["a path without a slash", withOther(":path", "healthz")],
    ["an empty path", withOther(":path", "")],
    ["two paths", [...request, [":path", "/readyz"]]],
    ["a line break in its path", withOther(":path", "/healthz HTTP/1.1\r\nx: y")],
    ["two words as its method", withOther(":method", "GET /")],
    ["a method in lower case", withOther(":method", "get")],
    ["no scheme", without(":scheme")],
    ["a pseudo-header after others", [["accept", "*/*"], ...request]],
    ["an unknown pseudo-header", [...request, [":other", "x"]]],
    ["the pseudo-header of a response", [...request, [":status", "200"]]],
    ["a name in upper case", [...request, ["Accept", "*/*"]]],
    ["the header connection", [...request, ["connection", "x-other"]]],
    ["the header transfer-encoding", [...request, ["transfer-encoding", "chunked"]]],
    ["the header upgrade", [...request, ["upgrade", "h2c"]]],
    ["te other than trailers", [...request, ["te", "gzip"]]],
    ["two lengths", [...request, ["content-length", "0"], ["content-length", "1"]]],
    ["a length without a body", [...request, ["content-length", "7"]]],
    ["two keys", [...request, ["authorization", "Bearer good"], ["authorization", "Bearer other"]]],
  ])("and not with %s", async (_, fields) => {
    expect(await isServed(fields)).toBe(false);
  });

  it("with right fields", async () => {
    expect(await isServed(request)).toBe(true);
  });

  it("and not when its trailers have pseudo-headers", async () => {
    const raw = await beginRaw();
    raw.write(headersFrame(1, BLOCK, "body follows"));
    await expect.poll(() => calls.active).toBe(1);
    raw.write(dataFrame(1, Buffer.from("{}"), "more follows"));
    raw.write(headersFrame(1, headerBlock([[":path", "/healthz"]]), "ends"));
    await expect.poll(() => raw.arrived.map(({ type }) => type)).toContain(TYPE.reset);
    await expect.poll(() => calls.active).toBe(0);
    expect(refusals.map(({ failure }) => failure.code)).toEqual(["cancelled"]);
  });
});

/** A connection whose client has sent GOAWAY while a call with a valid key waits for `answering`. */
async function leaveDuringCall() {
  const answering = Promise.withResolvers<void>();
  listing = answering.promise;
  const session = open();
  const answered = askHttp2(session, { ":path": "/v1/models", authorization: "Bearer good" });
  await expect.poll(() => lists).toBe(1);
  const isKnown = once(session, "goaway");
  session.close();
  await isKnown;
  return { answering, answered };
}

describe("a connection of HTTP/2", () => {
  it("ends after 65 s without a request, and not while it has one", async () => {
    const [idle, busy] = [open(), open()];
    const health = { ":path": "/healthz" };
    for (let turn = 0; turn < 2; turn++) {
      await Promise.all([askHttp2(idle, health), askHttp2(busy, health)]);
      pass(40_000);
    }
    const waiting = busy.request({ ":path": "/v1/models", authorization: "Bearer pending" });
    waiting.on("error", () => undefined);
    await expect.poll(() => asked).toBe(1);
    expect(idle.closed).toBe(false);
    const ended = once(idle, "close");
    pass(70_000);
    await ended;
    expect(busy.closed).toBe(false);
  });

  it.each([
    ["a frame of another length", frame({ type: TYPE.ping }, Buffer.alloc(3))],
    ["headers that are no HPACK", headersFrame(3, Buffer.alloc(20, 0xff), "ends")],
    ["data of a stream that has not begun", dataFrame(99, Buffer.from("x"), "ends")],
  ])("ends a minute after GOAWAY of its client and %s, which nghttp2 leaves open", async (_, invalid) => {
    const raw = await beginRaw();
    const goAway = frame({ type: TYPE.goAway }, Buffer.alloc(8));
    raw.write(Buffer.concat([headersFrame(1, BLOCK, "body follows"), goAway, invalid]));
    const answers = () => raw.arrived.filter(({ type }) => type === TYPE.goAway).length;
    await expect.poll(answers).toBe(2);
    pass(70_000);
    await raw.end;
  });

  it("with a call that has a valid key goes on after GOAWAY of its client", async () => {
    const { answering, answered } = await leaveDuringCall();
    pass(70_000);
    answering.resolve();
    expect(await answered).toMatchObject({ status: 200 });
  });

  it("is closed at the limit of connections after GOAWAY, unless a call with a valid key is in flight", async () => {
    const { answering, answered } = await leaveDuringCall();
    const raw = await beginRaw();
    raw.write(Buffer.concat([headersFrame(1, BLOCK, "body follows"), frame({ type: TYPE.goAway }, Buffer.alloc(8))]));
    await expect.poll(() => calls.active).toBe(2);
    closeIdle();
    // Its body has not arrived.
    await raw.end;
    answering.resolve();
    expect(await answered).toMatchObject({ status: 200 });
  });

  it("serves a request that was sent in time when the event loop was busy until the idle time was over", async () => {
    const raw = await beginRaw();
    const answered = () => raw.arrived.filter(({ type }) => type === TYPE.headers).map(({ stream }) => stream);
    raw.write(headersFrame(1, HEALTH, "ends"));
    await expect.poll(answered).toEqual([1]);
    raw.write(headersFrame(3, HEALTH, "ends"));
    pass(70_000);
    await expect.poll(answered).toEqual([1, 3]);
  });

  it("may have a thousand requests when 50 with a valid key have arrived and are not answered, and not before", async () => {
    const session = open();
    const limit = async (): Promise<number | undefined> => {
      pass(LOOK_MS);
      // Its answer follows changed SETTINGS.
      await askHttp2(session, { ":path": "/healthz" });
      return session.remoteSettings.maxConcurrentStreams;
    };
    for (let index = 0; index < 50; index++)
      session
        .request(WITH_KEY)
        .on("error", () => undefined)
        .write('{"model":');
    await expect.poll(() => calls.active).toBe(50);
    expect(await limit()).toBe(100);
    listing = new Promise(() => undefined);
    for (let index = 0; index < 49; index++)
      session.request({ ":path": "/v1/models", authorization: "Bearer good" }).on("error", () => undefined);
    await expect.poll(() => lists).toBe(49);
    expect(await limit()).toBe(100);
    session.request({ ":path": "/v1/models", authorization: "Bearer good" }).on("error", () => undefined);
    await expect.poll(() => lists).toBe(50);
    await expect.poll(limit).toBe(1_000);
  });

  it("may have no more requests for answers that are complete and not read", async () => {
    const raw = new RawHttp2(server.port).hello([[INITIAL_WINDOW_SIZE, 0]]);
    onTestFinished(() => raw.close());
    const block = headerBlock([
      ...PSEUDO,
      [":path", "/v1/models"],
      [":method", "GET"],
      ["authorization", "Bearer good"],
    ]);
    for (let index = 0; index < 60; index++) raw.write(headersFrame(2 * index + 1, block, "ends"));
    await expect.poll(() => raw.arrived.filter(({ type }) => type === TYPE.headers).length).toBe(60);
    pass(LOOK_MS);
    raw.write(frame({ type: TYPE.ping }, Buffer.alloc(8)));
    await expect.poll(() => raw.arrived.some(({ type }) => type === TYPE.ping)).toBe(true);
    const raised = raw.arrived.filter(({ type, flags }) => type === TYPE.settings && flags === 0);
    expect(raised).toHaveLength(1);
  });

  const closes = (raw: RawHttp2): void => raw.close();
  const reads = (raw: RawHttp2): unknown => raw.write(Buffer.concat([1, 3, 0].map((id) => windowUpdate(id, 9 * MIB))));
  const connectList = "/parley.v1.ModelService/List?connect=v1&encoding=json&message=%7B%7D";
  it.each([
    ["closes them", "/v1/models", closes],
    ["reads them", "/v1/models", reads],
    ["closes them (Connect)", connectList, closes],
    ["reads them (Connect)", connectList, reads],
  ])("gets no more lists of models than its key may leave unread, until it %s", async (_, path, read) => {
    models = [create(ModelSchema, { id: "m".repeat(3 * MIB) })];
    const raw = new RawHttp2(server.port).hello([[INITIAL_WINDOW_SIZE, 0]]);
    onTestFinished(() => raw.close());
    const list = { ":path": path, authorization: "Bearer good" };
    const block = headerBlock([...PSEUDO, [":method", "GET"], ...Object.entries(list)]);
    raw.write(Buffer.concat([1, 3].map((id) => headersFrame(id, block, "ends"))));
    await expect.poll(() => raw.arrived.filter(({ type }) => type === TYPE.headers).length).toBe(2);
    const refused = await askHttp2(open(), list);
    expect(refused).toMatchObject({ status: 429, text: expect.stringContaining("at most 8 MiB of answers") });
    read(raw);
    await expect.poll(async () => (await askHttp2(open(), list)).status).toBe(200);
  });

  it("ends when it resets more than 200 requests at once", async () => {
    const raw = await beginRaw();
    const resets = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => {
        const id = from + 2 * index;
        return Buffer.concat([headersFrame(id, BLOCK, "body follows"), resetStream(id)]);
      });
    // Fewer at once than nghttp2 refuses.
    for (const from of [3, 203]) {
      raw.write(Buffer.concat([...resets(from, 90), headersFrame(from + 180, HEALTH, "ends")]));
      await expect.poll(() => raw.closed || raw.arrived.some(({ stream }) => stream === from + 180)).toBe(true);
      expect(raw.closed).toBe(false);
    }
    raw.write(Buffer.concat(resets(403, 90)));
    await raw.end;
  });

  it("ends after a thousand DATA frames of one byte", async () => {
    const raw = await beginRaw();
    raw.write(headersFrame(1, BLOCK, "body follows"));
    raw.write(Buffer.concat(Array<Buffer>(1_100).fill(dataFrame(1, Buffer.from(" "), "more follows"))));
    await expect(raw.end).resolves.toBeUndefined();
  });

  describe("with a call in flight that has a valid key, as of another caller behind a proxy,", () => {
    const LIST = headerBlock([
      ...PSEUDO,
      [":path", "/v1/models"],
      [":method", "GET"],
      ["authorization", "Bearer good"],
    ]);
    const WITHOUT_KEY = headerBlock([...PSEUDO, ...Object.entries(CHAT)]);
    const isAnswered = (raw: RawHttp2, id: number): boolean =>
      raw.arrived.some(({ stream, type }) => stream === id && type === TYPE.headers);
    const isLeft = (raw: RawHttp2): boolean => raw.arrived.some(({ type }) => type === TYPE.goAway);

    /** A connection whose first stream is that call, and the function that lets it end. */
    async function serve() {
      const answering = Promise.withResolvers<void>();
      listing = answering.promise;
      const raw = await beginRaw();
      raw.write(headersFrame(1, LIST, "ends"));
      await expect.poll(() => lists).toBe(1);
      return {
        raw,
        expectAnswer: async (): Promise<void> => {
          answering.resolve();
          await expect.poll(() => isAnswered(raw, 1)).toBe(true);
        },
      };
    }

    it.each([
      ["with a valid key", BLOCK],
      ["without a key", WITHOUT_KEY],
    ])("resets only the request %s that has a thousand DATA frames of one byte", async (_, block) => {
      const { raw, expectAnswer } = await serve();
      raw.write(headersFrame(3, block, "body follows"));
      raw.write(Buffer.concat(Array<Buffer>(1_100).fill(dataFrame(3, Buffer.from(" "), "more follows"))));
      await expect.poll(() => raw.arrived.some(({ stream, type }) => stream === 3 && type === TYPE.reset)).toBe(true);
      raw.write(headersFrame(5, HEALTH, "ends"));
      await expect.poll(() => isAnswered(raw, 5)).toBe(true);
      await expectAnswer();
    });

    it("gets GOAWAY when more than 200 requests are reset at once, and ends after the call", async () => {
      const { raw, expectAnswer } = await serve();
      for (const from of [3, 203, 403]) {
        const resets = Array.from({ length: 90 }, (_, index) => {
          const id = from + 2 * index;
          return Buffer.concat([headersFrame(id, WITHOUT_KEY, "body follows"), resetStream(id)]);
        });
        raw.write(Buffer.concat([...resets, headersFrame(from + 180, HEALTH, "ends")]));
        await expect.poll(() => isLeft(raw) || isAnswered(raw, from + 180)).toBe(true);
      }
      expect(isLeft(raw)).toBe(true);
      await expectAnswer();
      await raw.end;
    });

    it("gets GOAWAY when more than 200 requests are reset, also while the call's request arrives", async () => {
      const raw = await beginRaw();
      raw.write(headersFrame(1, BLOCK, "body follows"));
      raw.write(dataFrame(1, Buffer.from(" "), "more follows"));
      for (const from of [3, 203, 403]) {
        const resets = Array.from({ length: 90 }, (_, index) => {
          const id = from + 2 * index;
          return Buffer.concat([headersFrame(id, WITHOUT_KEY, "body follows"), resetStream(id)]);
        });
        raw.write(Buffer.concat([...resets, headersFrame(from + 180, HEALTH, "ends")]));
        await expect.poll(() => raw.closed || isLeft(raw) || isAnswered(raw, from + 180)).toBe(true);
      }
      expect([raw.closed, isLeft(raw)]).toEqual([false, true]);
      raw.write(dataFrame(1, Buffer.from("{}"), "ends"));
      await expect.poll(() => isAnswered(raw, 1)).toBe(true);
      await raw.end;
    });

    it("gets GOAWAY for headers of requests without a key", async () => {
      const { raw, expectAnswer } = await serve();
      const long = headerBlock([
        ...PSEUDO,
        [":path", "/v1/models"],
        [":method", "GET"],
        ["x-long", "a".repeat(12_000)],
      ]);
      for (let id = 3; id < 143; id += 2) raw.write(headersFrame(id, long, "ends"));
      await expect.poll(() => isAnswered(raw, 141)).toBe(true);
      pass(LOOK_MS);
      await expect.poll(() => isLeft(raw)).toBe(true);
      await expectAnswer();
    });

    it("ends when control frames go on after GOAWAY", async () => {
      const { raw } = await serve();
      const updates = Buffer.concat(Array<Buffer>(50_000).fill(windowUpdate(0, 1)));
      const sendAll = async (id: number): Promise<void> => {
        await raw.send(Buffer.concat([updates, frame({ type: TYPE.ping }, Buffer.alloc(8, id))]));
        const isRead = ({ type, payload }: { type: number; payload: Buffer }) =>
          type === TYPE.ping && payload[0] === id;
        await vi.waitUntil(() => raw.closed || raw.arrived.some(isRead), { timeout: 10_000 });
        pass(LOOK_MS);
      };
      await sendAll(1);
      await expect.poll(() => isLeft(raw)).toBe(true);
      expect(raw.closed).toBe(false);
      await sendAll(2);
      await raw.end;
    });
  });

  it("gets GOAWAY when the server drains, and finishes its requests", async () => {
    const idle = open();
    await askHttp2(idle, { ":path": "/healthz" });
    const busy = open();
    const stream = await begin(busy);
    const drained = server.drain();
    await once(idle, "close");
    const answer = answerOf(stream);
    stream.end("nothing}");
    expect(await answer).toMatchObject({ status: 400 });
    await drained;
  });
});

describe("a port with HTTP/1.1 and HTTP/2 over plain TCP", () => {
  /** Writes these pieces, one by one, and returns what arrives first. */
  async function send(pieces: readonly string[]): Promise<string> {
    const socket = connectTcp(server.port, "127.0.0.1").setNoDelay();
    onTestFinished(() => void socket.destroy());
    for (const piece of pieces) {
      await new Promise((resolve) => socket.write(piece, resolve));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const [bytes] = (await once(socket, "data")) as [Buffer];
    return bytes.toString("latin1");
  }

  it("serves requests of HTTP/1.1, however they are cut, and several of a connection", async () => {
    const health = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    expect(await send([health])).toMatch(/^HTTP\/1\.1 200/);
    expect(await send(["G", "E", "T /", health.slice(5)])).toMatch(/^HTTP\/1\.1 200/);
    expect(await send(["P", "R", "OPFIND / HTTP/1.1\r\nhost: a\r\n\r\n"])).toMatch(/^HTTP\/1\.1 404/);
    expect(await send([health + health])).toMatch(/^HTTP\/1\.1 200/);
  });

  it("refuses a request of HTTP/1.1 with more than 100 headers, of which Node drops the last ones", async () => {
    const request = (count: number): string => {
      const others = Array.from({ length: count - 1 }, (_, index) => `x-${index}: a\r\n`);
      return `GET /healthz HTTP/1.1\r\nhost: a\r\n${others.join("")}\r\n`;
    };
    expect(await send([request(100)])).toMatch(/^HTTP\/1\.1 200/);
    for (const count of [101, 128, 129, 500]) expect(await send([request(count)])).toMatch(/^HTTP\/1\.1 431/);
  });

  it("recognises HTTP/2, however its preface is cut", async () => {
    const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for (const at of [1, 3, 14, 23, preface.length])
      expect((await send([preface.slice(0, at), preface.slice(at)]))[3]).toBe("\x04");
  });

  it("closes what does not begin, when it drains", async () => {
    const silent = connectTcp(server.port, "127.0.0.1").on("error", () => undefined);
    await once(silent, "connect");
    silent.write("PR");
    // Not `once`, which rejects for the reset of a connection whose bytes were not read.
    const closed = new Promise((resolve) => silent.once("close", resolve));
    await server.drain();
    await expect(closed).resolves.toBeDefined();
  });
});

import { create, toBinary } from "@bufbuild/protobuf";
import { once } from "node:events";
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CompletionRequestSchema, CompletionSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import type { GrpcServer } from "../../../src/inbound/grpc/server.ts";
import type { EdgeServices, KeyPrincipal, Refusal } from "../../../src/inbound/services.ts";
import {
  dataFrame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  RawHttp2,
  TYPE,
} from "../../faults/hostile/raw-http2.ts";
import { CREATE, MIB } from "../../faults/hostile/target.ts";
import { roomyAdmission } from "../../support/admission.ts";
import { FACTS, somebody } from "../../support/core-ports.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startGrpc } from "../../support/idle-services.ts";

/*
 * The look-up of a key does not come to an end: the database hangs. Keys in the cache are known.
 */

const WINDOW = 65_535;
const KNOWN = { authorization: "Bearer known" };
const UNAUTHENTICATED = "16";

let server: GrpcServer;
let clock: FakeClock;
let lookUp: PromiseWithResolvers<KeyPrincipal>;
/** Keys whose look-ups wait. */
let asked: Set<string | undefined>;
let refusals: Refusal[];
/** Lengths of the texts that have reached the handler. */
let received: number[];
let undo: (() => void)[];

beforeEach(async () => {
  clock = new FakeClock();
  lookUp = Promise.withResolvers();
  lookUp.promise.catch(() => undefined);
  asked = new Set();
  refusals = [];
  received = [];
  undo = [];
  const services: Partial<EdgeServices> = {
    completions: {
      create: async (request, call) => {
        call.admitted(FACTS);
        const kind = request.messages[0]?.parts[0]?.kind;
        if (kind?.case === "text") received.push(kind.value.length);
        return create(CompletionSchema, { model: "alpha" });
      },
    } as EdgeServices["completions"],
    authenticate: async ({ authorization }) => {
      if (authorization === KNOWN.authorization) return somebody;
      asked.add(authorization);
      return lookUp.promise;
    },
    limitsOf: () => FACTS,
    calls: new Calls(clock),
    admission: roomyAdmission(clock),
    clock,
    refused: (refusal) => void refusals.push(refusal),
  };
  server = await startGrpc(services, { maxSendBytes: MIB });
});
afterEach(() => {
  for (const step of undo.splice(0)) step();
  server.close();
});

function open(): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${server.port}`, { maxSessionMemory: 256 });
  undo.push(() => session.destroy());
  return session;
}

/** Enough for a busy machine. */
const WAIT = { timeout: 10_000 };

let unknownKeys = 0;

function begin(session: ClientHttp2Session, authorization = `Bearer unknown ${unknownKeys++}`): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": CREATE,
    "content-type": "application/grpc",
    te: "trailers",
    authorization,
  });
  return stream.on("error", () => undefined);
}

async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  let status: unknown;
  const look = (headers: Record<string, unknown>): void => {
    status = headers["grpc-status"] ?? status;
  };
  stream.on("response", look).on("trailers", look).resume();
  await once(stream, "close");
  return status;
}

function requestOf(length: number): Buffer {
  const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "a".repeat(length) } }] }];
  return grpcMessage(toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { model: "alpha", messages })));
}

/** Bytes of all buffers after a garbage collection. */
function bufferBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().arrayBuffers;
}

const isUpdate =
  (stream: number) =>
  (frame: { readonly type: number; readonly stream: number }): boolean =>
    frame.type === TYPE.windowUpdate && frame.stream === stream;

it("a message is read up to the window of its stream, that of its connection stays open, and it is read on when the key is known", async () => {
  const caller = new RawHttp2(server.port).hello();
  undo.push(() => caller.close());
  const headers = headerBlock(grpcHeaders(CREATE, { authorization: "Bearer unknown" }));
  const body = Buffer.concat([grpcMessage(Buffer.alloc(0), { length: MIB }), Buffer.alloc(WINDOW)]).subarray(0, WINDOW);
  caller.write(headersFrame(1, headers, "body follows"));
  for (let at = 0; at < WINDOW; at += 16_384)
    caller.write(dataFrame(1, body.subarray(at, at + 16_384), "more follows"));
  await expect.poll(() => caller.arrived.some(isUpdate(0))).toBe(true);
  expect(asked.size).toBe(1);
  expect(caller.arrived.some(isUpdate(1))).toBe(false);
  lookUp.resolve(somebody);
  await expect.poll(() => caller.arrived.some(isUpdate(1))).toBe(true);
});

it("such calls hold a window each, free it when they are refused, and delay no call with a known key on their connection", async () => {
  const session = open();
  await once(session, "remoteSettings");
  const before = bufferBytes();
  const prefix = grpcMessage(Buffer.alloc(0), { length: 30 * MIB });
  const streams = Array.from({ length: 40 }, () => begin(session));
  // The client shares its memory with the server: one piece for all.
  const piece = Buffer.alloc(MIB, 97);
  for (const stream of streams) {
    stream.write(prefix);
    stream.write(piece);
  }
  await expect.poll(() => asked.size).toBe(40);
  const honest = begin(session, KNOWN.authorization);
  honest.end(requestOf(MIB));
  expect(await statusOf(honest)).toBe("0");
  // A window each is 2.5 MiB, a piece each 40 MiB. The limit is between both, because buffers of
  // the honest request and of the client's sockets may still wait for their release.
  await expect.poll(() => bufferBytes() - before).toBeLessThan(20 * MIB);
  const statuses = streams.map(statusOf);
  lookUp.reject(new Failure("unauthenticated", "The key is not valid."));
  for (const stream of streams) stream.end();
  await expect.poll(() => bufferBytes() - before).toBeLessThan(4 * MIB);
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([UNAUTHENTICATED]));
  expect(refusals).toHaveLength(40);
});

it.each([
  ["arrives as a whole", 30_000, MIB],
  ["arrives in small pieces", 30_000, 3_000],
  ["is larger than the window", 3 * MIB, MIB],
])("a message that %s meanwhile reaches its handler", async (_, length, size) => {
  const stream = begin(open());
  const status = statusOf(stream);
  const request = requestOf(length);
  const pieces = Math.ceil(request.length / size);
  for (let piece = 0; piece < pieces; piece++) {
    stream.write(request.subarray(piece * size, (piece + 1) * size));
    await new Promise(setImmediate);
  }
  stream.end();
  await expect.poll(() => asked.size).toBe(1);
  lookUp.resolve(somebody);
  expect(await status).toBe("0");
  expect(received).toEqual([length]);
});

it("a call is not too slow for the time in which its key is looked up", async () => {
  const stream = begin(open());
  const status = statusOf(stream);
  const request = requestOf(MIB);
  stream.write(request);
  await expect.poll(() => asked.size).toBe(1);
  for (let step = 0; step < 600; step++) clock.advance(200);
  lookUp.resolve(somebody);
  await new Promise(setImmediate);
  clock.advance(200);
  stream.end();
  expect(await status).toBe("0");
});

it.each([
  ["without an error", 0],
  ["with one", 8],
])("calls that their callers reset meanwhile, %s, hold nothing", async (_, code) => {
  const session = open();
  const piece = Buffer.concat([grpcMessage(Buffer.alloc(0), { length: MIB }), Buffer.alloc(40_000)]);
  const before = bufferBytes();
  for (let round = 1; round <= 5; round++) {
    const streams = Array.from({ length: 50 }, () => begin(session));
    for (const stream of streams) stream.write(piece);
    await expect.poll(() => asked.size, WAIT).toBe(50 * round);
    clock.advance(1_000);
    for (const stream of streams) stream.close(code);
    // Node's client may miss the end of one whose data waits for the window of the connection.
    await expect.poll(() => streams.filter(({ destroyed }) => !destroyed).length, WAIT).toBeLessThanOrEqual(1);
  }
  await expect.poll(() => bufferBytes() - before, WAIT).toBeLessThan(5 * MIB);
});

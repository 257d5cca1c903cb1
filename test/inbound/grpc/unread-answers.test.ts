import { create, toBinary } from "@bufbuild/protobuf";
import { once } from "node:events";
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CompletionRequestSchema, CompletionSchema } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingRequestSchema, EmbeddingsSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { ListModelsResponseSchema } from "../../../gen/parley/v1/model_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { AdmissionControl } from "../../../src/admission/admission-control.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import type { GrpcServer } from "../../../src/inbound/grpc/server.ts";
import type { EdgeServices } from "../../../src/inbound/services.ts";
import { grpcMessage } from "../../faults/hostile/raw-http2.ts";
import { CREATE, MIB } from "../../faults/hostile/target.ts";
import { FACTS, somebody } from "../../support/core-ports.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { toInputs } from "../../support/embedding-inputs.ts";
import { startGrpc } from "../../support/idle-services.ts";

/*
 * Callers ask for large answers and do not read them.
 */

const EMBED = "/parley.v1.EmbeddingService/Create";
const EMBEDDING = grpcMessage(
  toBinary(EmbeddingRequestSchema, create(EmbeddingRequestSchema, { model: "e", inputs: toInputs(["a"]) })),
);
const COMPLETION = grpcMessage(
  toBinary(
    CompletionRequestSchema,
    create(CompletionRequestSchema, {
      model: "alpha",
      messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "a" } }] }],
    }),
  ),
);
const LIST = "/parley.v1.ModelService/List";
const LISTED = grpcMessage(Buffer.alloc(0));
const OK = "0";
const RESOURCE_EXHAUSTED = "8";
/** More than a stream's window, so that the answer stays at the server. */
const UNREAD = "x".repeat(16 * 1024);
const ANSWER_BYTES = 24 * MIB;

let server: GrpcServer;
let calls: Calls;
let limits: { concurrentRequests?: number };
let clock: FakeClock;
let undo: (() => void)[];
/** The text of a completion. */
let answer: string;
/** That of a listed model. */
let description: string;

beforeEach(async () => {
  clock = new FakeClock();
  calls = new Calls(clock);
  limits = {};
  undo = [];
  answer = UNREAD;
  description = "";
  const services: Partial<EdgeServices> = {
    completions: {
      create: async (_, call) => {
        call.admitted(FACTS);
        return create(CompletionSchema, { id: answer, model: "alpha" });
      },
    } as EdgeServices["completions"],
    embedder: {
      create: async (_, call) => {
        call.admitted(FACTS);
        call.share!.holdAnswer(ANSWER_BYTES);
        return create(EmbeddingsSchema, { id: UNREAD, model: "e" });
      },
    },
    models: {
      async page(_, call) {
        call.admitted(FACTS);
        return create(ListModelsResponseSchema, { models: [{ id: UNREAD, description }] });
      },
    } as EdgeServices["models"],
    authenticate: async () => ({ ...somebody, limits: { ...somebody.limits, ...limits } }),
    limitsOf: () => FACTS,
    calls,
    admission: new AdmissionControl(
      {
        maxCalls: 1_000,
        maxWaitMs: 0,
        accountConcurrency: () => undefined,
        arrivingBytes: { key: 40 * MIB, account: 96 * MIB, process: 512 * MIB, held: 1_024 * MIB },
      },
      {
        clock,
        memoryShare: () => 0,
        load: () => ({ busyShare: 0, delayMs: 0 }),
        atEndOfTurn: (callback) => void setImmediate(callback),
        changed: () => undefined,
      },
    ),
    clock,
  };
  server = await startGrpc(services);
});
afterEach(() => {
  for (const step of undo.splice(0)) step();
  server.close();
});

/** A connection whose streams get so many bytes of an answer before they are read. */
function open(initialWindowSize = 100): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${server.port}`, { settings: { initialWindowSize } });
  undo.push(() => session.destroy());
  return session;
}

interface Asked {
  readonly stream: ClientHttp2Stream;
  /** The status of a refusal; undefined when an answer has begun. */
  readonly refusal: unknown;
}

/** Makes a call and waits for its headers only. */
async function ask(session: ClientHttp2Session, path: string, message: Buffer): Promise<Asked> {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    authorization: "Bearer known",
  });
  stream.on("error", () => undefined).pause();
  stream.end(message);
  const refusal = await new Promise((resolve) => {
    stream.once("response", (headers: Record<string, unknown>) => resolve(headers["grpc-status"]));
  });
  return { stream, refusal };
}

/** Reads an answer to its end. */
async function read({ stream }: Asked): Promise<unknown> {
  const status = new Promise((resolve) => {
    stream.once("trailers", (headers: Record<string, unknown>) => resolve(headers["grpc-status"]));
  });
  stream.resume();
  return status;
}

it.each([
  ["an answer of embeddings", EMBED, EMBEDDING],
  ["a completion", CREATE, COMPLETION],
  ["a list of models", LIST, LISTED],
])("%s that is not read counts as a request of its key until it is read", async (_, path, message) => {
  limits = { concurrentRequests: 1 };
  const session = open();
  const first = await ask(session, path, message);
  expect(first.refusal).toBeUndefined();
  expect((await ask(session, path, message)).refusal).toBe(RESOURCE_EXHAUSTED);
  expect((await ask(open(), path, message)).refusal).toBe(RESOURCE_EXHAUSTED);
  expect(await read(first)).toBe(OK);
  expect((await ask(session, path, message)).refusal).toBeUndefined();
});

it.each([
  ["closes its stream", ({ stream }: Asked) => stream.close()],
  ["closes its connection", ({ stream }: Asked) => stream.session!.destroy()],
])("an unread answer counts no longer when its caller %s", async (_, leave) => {
  limits = { concurrentRequests: 1 };
  const other = open();
  for (let round = 0; round < 3; round++) {
    const asked = await ask(open(), EMBED, EMBEDDING);
    expect(asked.refusal).toBeUndefined();
    leave(asked);
    await expect.poll(() => calls.active).toBe(0);
  }
  expect((await ask(other, EMBED, EMBEDDING)).refusal).toBeUndefined();
});

it.each([
  ["large answers", EMBED, EMBEDDING, 100],
  // All of it is sent, at the pace of the connection's window.
  ["lists of models", LIST, LISTED, MIB],
])("%s that are not read are limited together, on any number of connections", async (_, path, message, window) => {
  description = "x".repeat(ANSWER_BYTES);
  const first = await ask(open(window), path, message);
  expect(first.refusal).toBeUndefined();
  expect((await ask(open(), path, message)).refusal).toBe(RESOURCE_EXHAUSTED);
  // Others of the key go on.
  expect((await ask(open(), CREATE, COMPLETION)).refusal).toBeUndefined();
  expect(await read(first)).toBe(OK);
  expect((await ask(open(), path, message)).refusal).toBeUndefined();
});

it("an answer that is not read is closed after half a minute, although its connection sends PINGs", async () => {
  const session = open();
  const { stream } = await ask(session, CREATE, COMPLETION);
  const ping = (): Promise<unknown> => new Promise((resolve) => session.ping(resolve));
  for (let passedMs = 0; passedMs < 29_000; passedMs += 200) {
    clock.advance(200);
    if (passedMs % 5_000 === 0) await ping();
  }
  await ping();
  expect(stream.closed).toBe(false);
  const closed = once(stream, "close");
  for (let passedMs = 0; passedMs < 4_000; passedMs += 200) clock.advance(200);
  await closed;
  expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
  await expect.poll(() => calls.active).toBe(0);
});

it("a large answer arrives whole", async () => {
  answer = "x".repeat(3 * MIB + 7);
  const { stream } = await ask(open(40_000), CREATE, COMPLETION);
  let bytes = 0;
  stream.on("data", (piece: Buffer) => (bytes += piece.length)).resume();
  const trailers = await once(stream, "trailers");
  expect(trailers[0]).toMatchObject({ "grpc-status": OK });
  // A prefix of five bytes, and the message with its two fields.
  expect(bytes).toBe(5 + toBinary(CompletionSchema, create(CompletionSchema, { id: answer, model: "alpha" })).length);
});

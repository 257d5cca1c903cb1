import { create, toBinary } from "@bufbuild/protobuf";
import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Completion, CompletionRequestSchema, CompletionSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { GrpcServer } from "../../../src/inbound/grpc/server.ts";
import type { EdgeServices } from "../../../src/inbound/services.ts";
import {
  dataFrame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  RawHttp2,
  resetStream,
  TYPE,
  windowUpdate,
} from "../../faults/hostile/raw-http2.ts";
import { CREATE } from "../../faults/hostile/target.ts";
import { FACTS, somebody } from "../../support/core-ports.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startGrpc } from "../../support/idle-services.ts";

const MIB = 1024 * 1024;
const UNAUTHENTICATED = "16";
const GOOD = { authorization: "Bearer good" };
const CHECK = "/grpc.health.v1.Health/Check";
/** Interval of the checks of each connection. */
const LOOK_MS = 200;

let server: GrpcServer;
let clock: FakeClock;
/** Time by which the event loop is late. */
let lateMs: number;
/** Completions that were asked for, and their answer. */
let created: number;
let answering: PromiseWithResolvers<Completion>;
const sessions: ClientHttp2Session[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  lateMs = created = 0;
  answering = Promise.withResolvers();
  const services: Partial<EdgeServices> = {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() + lateMs,
      after: (delayMs, callback) => clock.after(delayMs, callback),
    },
    authenticate: async ({ authorization }) => {
      if (authorization === GOOD.authorization) return somebody;
      throw new Failure("unauthenticated", "The key is not valid.");
    },
    limitsOf: () => FACTS,
    completions: {
      create: () => {
        created += 1;
        return answering.promise;
      },
    } as unknown as EdgeServices["completions"],
  };
  server = await startGrpc(services, { maxReceiveBytes: 4 * MIB, maxSendBytes: MIB });
});
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy();
  server.close();
});

/** A connection with a call whose message is declared and does not arrive. */
class Attacker extends RawHttp2 {
  #stream = 1;

  constructor() {
    super(server.port);
    const begun = grpcMessage(Buffer.alloc(0), { length: MIB });
    this.hello()
      .write(headersFrame(1, headerBlock(grpcHeaders(CREATE)), "body follows"))
      .write(dataFrame(1, begun, "more follows"));
  }

  /** Sends a frame `times` times. Resolves when the server has read them. */
  async repeat(frame: Buffer, times: number): Promise<void> {
    this.#stream += 2;
    const stream = this.#stream;
    this.write(Buffer.concat(Array<Buffer>(times).fill(frame)))
      .write(headersFrame(stream, headerBlock(grpcHeaders(CHECK)), "body follows"))
      .write(dataFrame(stream, grpcMessage(Buffer.alloc(0)), "ends"));
    const isAnswered = (): boolean =>
      this.closed || this.arrived.some((each) => each.stream === stream && each.type === TYPE.headers);
    await vi.waitUntil(isAnswered, { timeout: 10_000, interval: 5 });
  }
}

const ONE_BYTE = dataFrame(1, Buffer.from([0]), "more follows");

describe("a connection with DATA frames of one byte", () => {
  it("ends after a thousand, without a check of all connections", async () => {
    const attacker = new Attacker();
    await attacker.repeat(ONE_BYTE, 900);
    expect(attacker.closed).toBe(false);
    await attacker.repeat(ONE_BYTE, 200);
    expect(attacker.closed).toBe(true);
  });

  it("may have some more with time, but not with that of a late event loop", async () => {
    const attacker = new Attacker();
    await attacker.repeat(ONE_BYTE, 900);
    clock.advance(LOOK_MS);
    await attacker.repeat(ONE_BYTE, 150);
    expect(attacker.closed).toBe(false);
    lateMs = 60_000;
    clock.advance(LOOK_MS);
    await attacker.repeat(ONE_BYTE, 350);
    expect(attacker.closed).toBe(true);
  });
});

it("a call with DATA frames of one byte does not end a call of its connection that has a valid key", async () => {
  const attacker = new Attacker();
  const message = grpcMessage(toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { model: "alpha" })));
  attacker
    .write(headersFrame(3, headerBlock(grpcHeaders(CREATE, GOOD)), "body follows"))
    .write(dataFrame(3, message, "ends"));
  await expect.poll(() => created).toBe(1);
  attacker.write(Buffer.concat(Array<Buffer>(1_100).fill(ONE_BYTE)));
  const arrived = (stream: number, type: number): boolean =>
    attacker.arrived.some((each) => each.stream === stream && each.type === type);
  await expect.poll(() => arrived(1, TYPE.reset)).toBe(true);
  answering.resolve(create(CompletionSchema, { model: "alpha" }));
  await expect.poll(() => arrived(3, TYPE.data)).toBe(true);
  expect(attacker.closed).toBe(false);
});

it("calls that are reset do not end a call of their connection with a valid key whose request still arrives", async () => {
  const raw = new RawHttp2(server.port).hello();
  const text = { case: "text", value: "a".repeat(40_000) } as const;
  const request = create(CompletionRequestSchema, { model: "alpha", messages: [{ parts: [{ kind: text }] }] });
  const message = grpcMessage(toBinary(CompletionRequestSchema, request));
  const pieces = piecesOf(message, 15_000);
  raw.write(headersFrame(1, headerBlock(grpcHeaders(CREATE, GOOD)), "body follows"));
  for (const piece of pieces.slice(0, 2)) raw.write(dataFrame(1, piece, "more follows"));
  const isLeft = (): boolean => raw.arrived.some(({ type }) => type === TYPE.goAway);
  const block = headerBlock(grpcHeaders(CREATE));
  for (let id = 3; !raw.closed && !isLeft() && id < 1_000; id += 2) {
    await raw.send(Buffer.concat([headersFrame(id, block, "body follows"), resetStream(id)]));
    if (id % 100 === 1) await new Promise((resolve) => setImmediate(resolve));
  }
  await expect.poll(() => raw.closed || isLeft()).toBe(true);
  expect(raw.closed).toBe(false);
  raw.write(dataFrame(1, pieces[2]!, "ends"));
  await expect.poll(() => created).toBe(1);
  answering.resolve(create(CompletionSchema, { model: "alpha" }));
  const isAnswered = (): boolean => raw.arrived.some(({ type, stream }) => type === TYPE.data && stream === 1);
  await expect.poll(isAnswered).toBe(true);
});

it("a connection with other frames has no allowance for the time in which the event loop was late", async () => {
  const attacker = new Attacker();
  const update = windowUpdate(0, 1);
  await attacker.repeat(update, Math.floor(500_000 / update.length));
  clock.advance(LOOK_MS);
  lateMs = 60_000;
  clock.advance(LOOK_MS);
  expect(attacker.closed).toBe(false);
  await attacker.repeat(update, Math.floor(200_000 / update.length));
  clock.advance(LOOK_MS);
  await attacker.end;
});

/** Makes a call whose body is written in these pieces, a DATA frame each; returns its status. */
async function call(session: ClientHttp2Session, path: string, pieces: readonly Buffer[]): Promise<unknown> {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  let status: unknown;
  const look = (headers: Record<string, unknown>): void => {
    status = headers["grpc-status"] ?? status;
  };
  stream.on("response", look).on("trailers", look).resume();
  for (const piece of pieces) await new Promise((resolve) => stream.write(piece, resolve));
  const closed = once(stream, "close");
  stream.end();
  await closed;
  return status;
}

function piecesOf(bytes: Buffer, size: number): Buffer[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
}

it("a large call that is refused has a message that clients decode", async () => {
  const wrong = new Failure("unauthenticated", "The key is wrong, or 100 % old.");
  const own = await startGrpc({ authenticate: () => Promise.reject(wrong) });
  onTestFinished(() => own.close());
  const session = connect(`http://127.0.0.1:${own.port}`);
  sessions.push(session);
  const stream = session.request(Object.fromEntries(grpcHeaders(CREATE, GOOD)));
  stream.end(grpcMessage(Buffer.alloc(40_000)));
  const [headers] = (await once(stream, "response")) as [Readonly<Record<string, string>>];
  expect(decodeURI(headers["grpc-message"]!)).toBe(wrong.message);
});

describe("an honest connection continues", () => {
  const session = (): ClientHttp2Session => {
    const opened = connect(`http://127.0.0.1:${server.port}`);
    sessions.push(opened);
    return opened;
  };

  it.each([
    ["2 MiB in DATA frames of 1 KiB", 2 * MIB, 1024],
    ["100 KiB in DATA frames of 100 bytes", 100 * 1024, 100],
  ])("when it sends a message of %s", async (_, length, size) => {
    const pieces = piecesOf(grpcMessage(Buffer.alloc(length)), size);
    expect(await call(session(), CREATE, pieces)).toBe(UNAUTHENTICATED);
  });

  it("when each piece of a large message is followed by a small rest, as through HAProxy", async () => {
    const pieces = piecesOf(grpcMessage(Buffer.alloc(2 * MIB)), 1_024);
    const cut = pieces.flatMap((piece) => [piece.subarray(0, 1_016), piece.subarray(1_016)]);
    expect(await call(session(), CREATE, cut)).toBe(UNAUTHENTICATED);
  });

  it("when it sends the prefix and the message of each call apart", async () => {
    const opened = session();
    const message = grpcMessage(Buffer.from([0x0a, 0]));
    const pieces = [message.subarray(0, 5), message.subarray(5)];
    for (let turn = 0; turn < 15; turn++) {
      const calls = Array.from({ length: 80 }, () => call(opened, CHECK, pieces));
      expect(new Set(await Promise.all(calls))).toEqual(new Set(["0"]));
    }
  });
});

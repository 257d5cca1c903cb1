import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { CREATE, type Target } from "./target.ts";
import {
  dataFrame,
  frame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  RawHttp2,
  resetStream,
  settings,
  TYPE,
  windowUpdate,
} from "./raw-http2.ts";

/** A flood: sent once, and then repeatedly. `stream` is an unused odd stream ID. */
export interface Flood {
  readonly name: string;
  readonly first?: (block: Buffer) => Buffer;
  readonly next: (block: Buffer, stream: number) => Buffer;
}

/** A valid completion request. */
export const REQUEST = toBinary(
  CompletionRequestSchema,
  create(CompletionRequestSchema, {
    model: "local/test",
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] }],
  }),
);

const NOTHING = Buffer.alloc(0);
/** A header value of this size, once in the HPACK table, can be referenced with a single byte. */
export const ENTRY_OF_4_KIB = 4000;
/** Reference to the newest entry of the table. */
export const NEWEST_ENTRY = 0xbe;

function openOne(block: Buffer): Buffer {
  return headersFrame(1, block, "body follows");
}

/** Adds a header to the table and references it sixteen thousand times. */
function bomb(block: Buffer): Buffer {
  return Buffer.concat([
    block,
    rememberedHeader("x-bomb", "b".repeat(ENTRY_OF_4_KIB)),
    Buffer.alloc(12_000, NEWEST_ENTRY),
  ]);
}

/** Adds a header to the table. */
export function rememberedHeader(name: string, value: string): Buffer {
  const literal = headerBlock([[name, value]]);
  literal[0] = 0x40;
  return literal;
}

function openThen(more: (stream: number) => Buffer): Flood["next"] {
  return (block, stream) => Buffer.concat([headersFrame(stream, block, "body follows"), more(stream)]);
}

function endsTwice(stream: number): Buffer {
  const ending = dataFrame(stream, NOTHING, "ends");
  return Buffer.concat([ending, ending]);
}

/**
 * Returns all floods. `block` has the headers of a call with a valid key, so that only the flood can be the reason of a
 * refusal.
 */
export const FLOODS: readonly Flood[] = [
  { name: "rapid reset", next: openThen(resetStream) },
  {
    name: "rapid reset of whole requests",
    next: openThen((stream) => Buffer.concat([dataFrame(stream, grpcMessage(REQUEST), "ends"), resetStream(stream)])),
  },
  { name: "resets that the server is made to send", next: openThen((stream) => windowUpdate(stream, 0)) },
  { name: "windows that overflow", next: openThen((stream) => windowUpdate(stream, 0x7fff_ffff)) },
  { name: "data after its end", next: openThen(endsTwice) },
  { name: "streams beyond the limit", next: openThen(() => NOTHING) },
  { name: "streams without a header", next: (_, stream) => headersFrame(stream, NOTHING, "ends") },
  { name: "streams that are open already", first: openOne, next: openOne },
  { name: "even streams", next: (block, stream) => headersFrame(stream + 1, block, "ends") },
  { name: "PING", next: () => frame({ type: TYPE.ping }, Buffer.alloc(8)) },
  { name: "SETTINGS", next: () => settings([[4, 65_535]]) },
  { name: "empty SETTINGS", next: () => settings() },
  { name: "WINDOW_UPDATE", first: openOne, next: () => windowUpdate(0, 1) },
  { name: "WINDOW_UPDATE of a stream", first: openOne, next: () => windowUpdate(1, 1) },
  {
    name: "PRIORITY",
    next: (_, stream) => frame({ type: TYPE.priority, stream }, Buffer.from([0, 0, 0, 0, 16])),
  },
  { name: "empty DATA", first: openOne, next: () => dataFrame(1, NOTHING, "more follows") },
  {
    name: "padded DATA",
    first: openOne,
    next: () => frame({ type: TYPE.data, flags: 8, stream: 1 }, Buffer.from([0])),
  },
  {
    name: "DATA of one byte",
    // Announces a message that never arrives.
    first: (block) =>
      Buffer.concat([openOne(block), dataFrame(1, grpcMessage(NOTHING, { length: 60_000_000 }), "more follows")]),
    next: () => dataFrame(1, Buffer.from([0]), "more follows"),
  },
  {
    name: "empty CONTINUATION",
    first: (block) => frame({ type: TYPE.headers, stream: 1 }, block),
    next: () => frame({ type: TYPE.continuation, stream: 1 }),
  },
  {
    name: "CONTINUATION",
    first: (block) => frame({ type: TYPE.headers, stream: 1 }, block),
    next: () => frame({ type: TYPE.continuation, stream: 1 }, headerBlock([["x", "y".repeat(1000)]])),
  },
  { name: "HPACK bombs", next: (block, stream) => headersFrame(stream, bomb(block), "ends") },
  { name: "blocks that are no HPACK", next: (_, stream) => headersFrame(stream, Buffer.alloc(64, 0xff), "ends") },
  { name: "frames of an unknown type", next: () => frame({ type: 0x42 }, Buffer.alloc(4)) },
  { name: "frames that are too large", next: () => frame({ type: 0x42 }, Buffer.alloc(20_000)) },
  { name: "resets of a closed stream", first: openOne, next: () => resetStream(1) },
  {
    name: "calls after its own GOAWAY",
    first: () => frame({ type: TYPE.goAway }, Buffer.alloc(8)),
    next: (block, stream) => headersFrame(stream, block, "ends"),
  },
];

/** Headers of a call with a valid key. */
export function callBlock(key: string): Buffer {
  return headerBlock(grpcHeaders(CREATE, { authorization: `Bearer ${key}` }));
}

/** Headers of a request of HTTP with a valid key. */
export function httpBlock(key: string): Buffer {
  const json = { "content-type": "application/json", authorization: `Bearer ${key}` };
  return headerBlock(grpcHeaders("/v1/chat/completions", json).filter(([name, value]) => !isOfGrpc(name, value)));
}

function isOfGrpc(name: string, value: string): boolean {
  return name === "te" || value === "application/grpc";
}

/** Timeout for a connection that is never closed. */
const GIVE_UP_MS = 3000;
/** Approximate size of one write. */
const PIECE_BYTES = 32 * 1024;

/** Floods the connection until it is closed; returns the duration. `blockOf`: headers of its calls. Default: those of gRPC. */
export async function flood(
  target: Target,
  { first, next }: Flood,
  { reads, blockOf = callBlock }: { readonly reads: boolean; readonly blockOf?: typeof callBlock },
): Promise<number> {
  const block = blockOf(target.product.firstKey);
  const connection = new RawHttp2(target.dialGrpc()).hello();
  if (!reads) connection.pause();
  if (first !== undefined) connection.write(first(block));
  const begunMs = performance.now();
  let stream = 3;
  while (!connection.closed && performance.now() - begunMs < GIVE_UP_MS) {
    const pieces: Buffer[] = [];
    for (let size = 0; size < PIECE_BYTES; size += pieces.at(-1)!.length) {
      pieces.push(next(block, stream));
      stream += 2;
    }
    await Promise.race([connection.send(Buffer.concat(pieces)), connection.end]);
    // The close is detected in the next event-loop turn.
    await setImmediate();
  }
  connection.close();
  return performance.now() - begunMs;
}

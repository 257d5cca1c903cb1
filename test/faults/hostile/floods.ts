import { create, toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { CREATE } from "./target.ts";
import {
  dataFrame,
  frame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  resetStream,
  settings,
  TYPE,
  windowUpdate,
} from "./raw-http2.ts";

/** A flood: what is sent once, and then again and again. `stream` is a number that was not used before, and odd. */
export interface Flood {
  readonly name: string;
  readonly first?: (block: Buffer) => Buffer;
  readonly next: (block: Buffer, stream: number) => Buffer;
}

/** A completion that would be served. */
export const REQUEST = toBinary(
  CompletionRequestSchema,
  create(CompletionRequestSchema, {
    model: "local/test",
    messages: [{ role: Role.USER, content: [{ content: { case: "text", value: "hi" } }] }],
  }),
);

const NOTHING = Buffer.alloc(0);
/** A header of this size, once remembered, can be meant by a single byte. */
const BOMB_BYTES = 4000;
/** That byte: the newest entry of the table. */
const NEWEST_ENTRY = 0xbe;

function openOne(block: Buffer): Buffer {
  return headersFrame(1, block, "body follows");
}

/** A header that is remembered, and then meant sixteen thousand times. */
function bomb(block: Buffer): Buffer {
  const literal = headerBlock([["x-bomb", "b".repeat(BOMB_BYTES)]]);
  // Literal, to be remembered.
  literal[0] = 0x40;
  return Buffer.concat([block, literal, Buffer.alloc(12_000, NEWEST_ENTRY)]);
}

function openThen(more: (stream: number) => Buffer): Flood["next"] {
  return (block, stream) => Buffer.concat([headersFrame(stream, block, "body follows"), more(stream)]);
}

function endsTwice(stream: number): Buffer {
  const ending = dataFrame(stream, NOTHING, "ends");
  return Buffer.concat([ending, ending]);
}

/** `block` is the head of a call with a key that works: nothing but the flood itself may be the reason to refuse it. */
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
    // A message is said to come that never does.
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

/** The headers of a call that is let in. */
export function callBlock(key: string): Buffer {
  return headerBlock(grpcHeaders(CREATE, { authorization: `Bearer ${key}` }));
}

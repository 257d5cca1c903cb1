import { type DescField, type DescMessage, ScalarType, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { readScenarios } from "../../product/support/fixtures.ts";
import { damage } from "./damage.ts";
import type { Random } from "./random.ts";

/** Requests of the recorded fixtures, as messages of the contract. */
const recorded = readScenarios().flatMap(({ clientRequest }) => {
  if (clientRequest === undefined) return [];
  const { request } = readChatRequest(structuredClone(clientRequest));
  return [
    { ...request, model: "local/test" },
    { ...request, model: "alpha-haiku-4.5" },
  ].map((each) => Buffer.from(toBinary(CompletionRequestSchema, each)));
});

/** Draws the bytes of a message, possibly invalid. */
export function messageBytes(desc: DescMessage, random: Random): Buffer {
  const kind = random.below(100);
  if (kind < 15) return random.pick(recorded);
  if (kind < 40) return damage(random.pick(recorded), random);
  if (kind < 50) return random.bytes(random.below(100));
  if (kind < 55) return nested(random.pick([10, 99, 100, 101, 5000]), random);
  // In addition to a valid request, so that the invalid parts are reached.
  const base = random.percent(50) ? random.pick(recorded) : Buffer.alloc(0);
  const more = drawMessage(desc, { random, depth: 0 });
  const bytes = Buffer.concat([base, more]);
  return kind < 60 ? damage(bytes, random) : bytes;
}

interface Drawing {
  readonly random: Random;
  readonly depth: number;
}

/** Encodes some of the message's fields; one in twenty has a wrong type. */
function drawMessage(desc: DescMessage, { random, depth }: Drawing): Buffer {
  const writer = new BinaryWriter();
  for (const field of desc.fields) {
    if (!random.percent(depth > 2 ? 10 : 25)) continue;
    if (random.percent(5)) {
      drawStrange(writer, field.number, random);
      continue;
    }
    const times = field.fieldKind === "list" || field.fieldKind === "map" ? random.below(4) : random.percent(5) ? 2 : 1;
    for (let count = 0; count < times; count++) drawField(writer, field, { random, depth });
  }
  // A field of a newer client.
  if (random.percent(10)) drawStrange(writer, random.pick([0, 15, 999, 19_000, 536_870_911]), random);
  return Buffer.from(writer.finish());
}

function drawField(writer: BinaryWriter, field: DescField, drawing: Drawing): void {
  const { random, depth } = drawing;
  const inner = field.fieldKind === "map" ? undefined : field.message;
  if (inner !== undefined) {
    const bytes = depth > 6 ? Buffer.alloc(0) : drawMessage(inner, { random, depth: depth + 1 });
    return void writer.tag(field.number, WireType.LengthDelimited).bytes(bytes);
  }
  if (field.fieldKind === "map") {
    const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(drawText(random));
    if (random.percent(90)) entry.tag(2, WireType.LengthDelimited).bytes(drawText(random));
    return void writer.tag(field.number, WireType.LengthDelimited).bytes(entry.finish());
  }
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return void writer.tag(field.number, WireType.LengthDelimited).bytes(drawText(random));
    case ScalarType.DOUBLE:
      return void writer.tag(field.number, WireType.Bit64).double(random.pick(NUMBERS));
    case ScalarType.FLOAT:
      return void writer.tag(field.number, WireType.Bit32).float(random.pick(NUMBERS));
    default:
      // Numbers, booleans and enums, with known and unknown values.
      return void writer.tag(field.number, WireType.Varint).raw(random.pick(VARINTS));
  }
}

const NUMBERS = [0, -0, 0.5, 1, 2, -1, 1e30, Number.NaN, Infinity, -Infinity];
const VARINTS = [
  [0],
  [1],
  [2],
  [7],
  [100],
  [0x80, 0x20],
  [0xff, 0xff, 0xff, 0xff, 0x07],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
].map((bytes) => Uint8Array.from(bytes));

const TEXTS = [
  "hi",
  "",
  "{}",
  "local/test",
  "alpha-haiku-4.5",
  "get_weather",
  "日本🗼",
  "\0",
  "__proto__",
  '{"type":"object"}',
  "[".repeat(300),
];
/** Invalid UTF-8: a lone byte, an overlong zero, a lone surrogate, a truncated character. */
const NO_TEXTS = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f]].map((bytes) => Buffer.from(bytes));

function drawText(random: Random): Buffer {
  if (random.percent(4)) return random.pick(NO_TEXTS);
  if (random.percent(2)) return Buffer.alloc(random.pick([1000, 70_000]), random.pick(["a", "é"]));
  return Buffer.from(random.pick(TEXTS));
}

/** A field with any wire type, including the removed ones. */
function drawStrange(writer: BinaryWriter, number: number, random: Random): void {
  const wireType = random.below(8);
  writer.uint32(((number << 3) | wireType) >>> 0);
  if (wireType === 2) writer.bytes(random.bytes(random.below(20)));
  else writer.raw(Uint8Array.from(random.bytes(random.below(12))));
}

/** Field 3 of a request, its messages, and field 2 of a message, its parts: with their wire type. */
const MESSAGES_TAG = 0x1a;
const PARTS_TAG = 0x12;

/** Nested messages: parts, and unknown fields, which may be nested too. */
function nested(depth: number, random: Random): Buffer {
  const tag = random.pick([PARTS_TAG, 0x0a, 0x7a, 0x1b]);
  if (tag === 0x1b) return Buffer.concat([Buffer.alloc(depth, 0x1b), Buffer.alloc(depth, 0x1c)]);
  let bytes = Buffer.alloc(0);
  for (let level = 0; level < Math.min(depth, 2000); level++) {
    const length = new BinaryWriter().uint32(bytes.length).finish();
    const isOutermost = level === Math.min(depth, 2000) - 1;
    const outer = tag === PARTS_TAG && isOutermost ? MESSAGES_TAG : tag;
    bytes = Buffer.concat([Buffer.from([outer]), length, bytes]);
  }
  return bytes;
}

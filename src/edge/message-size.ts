import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** Below this a message cannot hold enough fields to matter, and is not looked at. */
const SMALL_BYTES = 32 * 1024;

/** How many fields a request's message may have, its inner messages' and lists' included. */
export const MAX_MESSAGE_FIELDS = 200_000;

/**
 * Whether decoding this message would make more objects than a request may have: empty messages cost two bytes on the
 * wire and a hundred in memory. Throws when the bytes are no message at all.
 */
export function hasTooManyFields(desc: DescMessage, bytes: Uint8Array): boolean {
  return bytes.length > SMALL_BYTES && countFields(desc, bytes, 0) > MAX_MESSAGE_FIELDS;
}

/** Counts on from `count`, and stops when there are too many. */
function countFields(desc: DescMessage, bytes: Uint8Array, count: number): number {
  const reader = new BinaryReader(bytes);
  const fields = new Map(desc.fields.map((field) => [field.number, field]));
  while (reader.pos < reader.len && count <= MAX_MESSAGE_FIELDS) {
    const [number, wireType] = reader.tag();
    const field = fields.get(number);
    count += 1;
    if (wireType !== WireType.LengthDelimited || field === undefined) {
      reader.skip(wireType, number);
      continue;
    }
    const content = reader.bytes();
    const inner = field.fieldKind === "map" ? undefined : field.message;
    if (inner !== undefined) count = countFields(inner, content, count);
    else if (field.fieldKind === "list" && !isText(field.scalar)) count += content.length; // packed: a value per byte
  }
  return count;
}

function isText(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
}

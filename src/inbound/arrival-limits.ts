import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { EmbeddingService } from "../../gen/parley/v1/embedding_pb.js";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import { Failure, invalidField } from "../core/failure.ts";
import { MAX_REQUEST_JSON } from "../encoding/json-size.ts";

/** Limit of bytes of a message of services that call no provider: such a message names one model at most. */
export const MAX_QUESTION_BYTES = 16 * 1024;

/** Path prefixes of the services that call providers. */
const METERED = [CompletionService, EmbeddingService].map(({ typeName }) => `/${typeName}/`);

/** Whether a path is of a service that calls providers. */
export function isMetered(path: string): boolean {
  return METERED.some((prefix) => path.startsWith(prefix));
}

const LISTS = `/${ModelService.typeName}/${ModelService.method.list.name}`;

/** Whether calls of a path take a slot, which counts their work and their answers: those of providers, and lists of models. */
export function takesSlot(path: string): boolean {
  return isMetered(path) || path === LISTS;
}

/** Smaller messages cannot exceed the limits and are not counted. */
const SMALL_BYTES = 32 * 1024;

/** Limit of fields of a request message, with those of inner messages and list elements. */
export const MAX_MESSAGE_FIELDS = MAX_REQUEST_JSON.values;
/**
 * Limit of inner messages and map entries of a request: 2,000 messages with four parts or calls each, and 2,000 tools, are 14,000.
 * Decoding one takes a microsecond, and an empty one is two bytes on the wire.
 */
export const MAX_INNER_MESSAGES = 20_000;

/**
 * Refuses a message that would decode into more objects than a request may have. Throws `request_too_large`, and any other
 * error for bytes that are not a message. Returns whether the message may have fields that are parts of the bytes, such as pictures.
 */
export function requireDecodable(desc: DescMessage, bytes: Uint8Array): boolean {
  if (bytes.length <= SMALL_BYTES) return true;
  const counts = { fields: 0, messages: 0, sharesBytes: false };
  countFields(desc, bytes, counts);
  return counts.sharesBytes;
}

/** Longest text of a 64-bit number in protobuf's JSON: the library makes a BigInt of it, which takes seconds for millions of digits. */
const MAX_NUMBER_CHARS = 64;

/**
 * `requireDecodable` for a message in protobuf's JSON, parsed already: each object in it becomes a message. Throws `invalid_request` for
 * a text that is too long for a number of 64 bits, too.
 */
export function requireDecodableJson(desc: DescMessage, json: JsonValue): void {
  countObjects(json, { fields: 0, messages: 0, sharesBytes: false }, desc);
}

interface Counts {
  fields: number;
  messages: number;
  /** Whether there is a field of bytes, or an unknown one. */
  sharesBytes: boolean;
}

function countFields(desc: DescMessage, bytes: Uint8Array, counts: Counts): void {
  const reader = new BinaryReader(bytes);
  const fields = fieldsOf(desc);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = fields.get(number);
    countField(counts, 1);
    if (field === undefined || field.scalar === ScalarType.BYTES) counts.sharesBytes = true;
    if (wireType === WireType.StartGroup) {
      skipGroup(reader, counts);
      continue;
    }
    if (wireType !== WireType.LengthDelimited || field === undefined) {
      reader.skip(wireType, number);
      continue;
    }
    const content = reader.bytes();
    // An entry of a map costs as much as a message.
    if (field.fieldKind === "map" || field.message !== undefined) countMessage(counts);
    if (field.fieldKind === "map") countEntry(field, content, counts);
    else if (field.message !== undefined) countFields(field.message, content, counts);
    else if (field.fieldKind === "list" && !isText(field.scalar)) countField(counts, content.length); // packed: a value per byte
  }
}

/** Counts the fields of a map's entry: a key, a value, and unknown ones. */
function countEntry({ message }: DescField & { readonly fieldKind: "map" }, bytes: Uint8Array, counts: Counts): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    countField(counts, 1);
    if (wireType === WireType.StartGroup) skipGroup(reader, counts);
    else if (number === 2 && message !== undefined && wireType === WireType.LengthDelimited)
      countFields(message, reader.bytes(), counts);
    else reader.skip(wireType, number);
  }
}

/**
 * Skips a group, whose beginning was read, and counts its fields. No message of the contract has one: the library would skip and keep
 * tens of megabytes of fields as one unknown field.
 */
function skipGroup(reader: BinaryReader, counts: Counts): void {
  for (let depth = 1; depth > 0;) {
    const [number, wireType] = reader.tag();
    countField(counts, 1);
    if (wireType === WireType.StartGroup) depth += 1;
    else if (wireType === WireType.EndGroup) depth -= 1;
    else reader.skip(wireType, number);
  }
}

/** `desc`: the message of an object, or of the objects in a list; undefined for a map and for fields that are not known. */
function countObjects(json: JsonValue, counts: Counts, desc: DescMessage | undefined): void {
  if (typeof json !== "object" || json === null) return;
  if (Array.isArray(json)) {
    for (const value of json) countObjects(value, counts, desc);
    return;
  }
  countMessage(counts);
  const fields = desc && jsonFieldsOf(desc);
  for (const key in json) {
    const value = json[key]!;
    const field = fields?.get(key);
    if (field !== undefined && OF_64_BITS.has(field.scalar)) requireShortNumbers(field.name, value);
    countObjects(value, counts, field?.fieldKind === "map" ? undefined : field?.message);
  }
}

/** Throws for a value, or one of a list or map, that is too long for a number of 64 bits. */
function requireShortNumbers(name: string, json: JsonValue): void {
  const values = typeof json === "object" && json !== null ? Object.values(json) : [json];
  if (values.some((value) => typeof value === "string" && value.length > MAX_NUMBER_CHARS))
    throw invalidField(name, "must be a whole number of 64 bits");
}

function countField(counts: Counts, count: number): void {
  counts.fields += count;
  if (counts.fields > MAX_MESSAGE_FIELDS)
    throw new Failure("request_too_large", `The request has more than ${MAX_MESSAGE_FIELDS} fields.`);
}

function countMessage(counts: Counts): void {
  counts.messages += 1;
  if (counts.messages > MAX_INNER_MESSAGES) {
    const what = "messages, parts, tool calls, tools and entries of maps together";
    throw new Failure("request_too_large", `The request has more than ${MAX_INNER_MESSAGES} ${what}.`);
  }
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(desc: DescMessage): ReadonlyMap<number, DescField> {
  let fields = known.get(desc);
  if (fields === undefined) known.set(desc, (fields = new Map(desc.fields.map((field) => [field.number, field]))));
  return fields;
}

const knownInJson = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** The fields by their names in JSON, of which each has two. */
function jsonFieldsOf(desc: DescMessage): ReadonlyMap<string, DescField> {
  let fields = knownInJson.get(desc);
  if (fields === undefined) {
    fields = new Map(desc.fields.flatMap((field) => [field.name, field.jsonName].map((name) => [name, field])));
    knownInJson.set(desc, fields);
  }
  return fields;
}

/** Types of 64-bit numbers. */
const OF_64_BITS: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

function isText(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
}

/** Grace period of arriving requests, whatever their pace and size. */
const GRACE_MS = 10_000;
const WHOLE_MS = 60_000;

/** Slowest accepted pace after the grace period, in bytes per millisecond: 2,000 bit/s. */
const SLOWEST_SENDER = 0.25;

/**
 * Whether an incomplete request arrives too slowly: `bytes` after `elapsedMs`. A body must arrive at the pace at which its
 * declared length (default: not declared) takes a minute.
 */
export function arrivesTooSlowly(bytes: number, elapsedMs: number, declaredBytes = 0): boolean {
  return elapsedMs > GRACE_MS && bytes < elapsedMs * Math.max(SLOWEST_SENDER, declaredBytes / WHOLE_MS);
}

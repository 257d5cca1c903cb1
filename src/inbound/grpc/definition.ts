import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { type CompletionChunk, CompletionChunkSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure, invalidField } from "../../core/failure.ts";
import { releaseMemory } from "../../core/release-memory.ts";
import { decodeRequest } from "../decode-request.ts";

/** A message's bytes on the wire. */
export function encode(desc: DescMessage, message: Message): Buffer {
  const piece = desc === CompletionChunkSchema ? encodeText(message as CompletionChunk) : undefined;
  if (piece !== undefined) return piece;
  const bytes = toBinary(desc, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// Tags: field number and wire type, one byte each.
const PART_DELTA = (3 << 3) | 2;
const CHOICE_INDEX = 1 << 3;
const PART_INDEX = 2 << 3;
const TEXT = (3 << 3) | 2;
/** A larger index takes more than one byte. */
const MAX_SHORT_INDEX = 0x7f;

/**
 * Encodes a text delta, which nearly all chunks are; undefined for any other chunk. The library's generic encoder takes longer
 * for a text delta than parsing the provider's event.
 */
function encodeText({ event, $unknown }: CompletionChunk): Buffer | undefined {
  if (event.case !== "partDelta" || $unknown !== undefined) return undefined;
  const { choiceIndex, partIndex, content, logprobs, $unknown: more } = event.value;
  if (content.case !== "text" || logprobs.length > 0 || more !== undefined) return undefined;
  if (choiceIndex < 0 || choiceIndex > MAX_SHORT_INDEX || partIndex < 0 || partIndex > MAX_SHORT_INDEX)
    return undefined;
  const length = Buffer.byteLength(content.value);
  const indexes = (choiceIndex === 0 ? 0 : 2) + (partIndex === 0 ? 0 : 2);
  const delta = indexes + 1 + sizeOfLength(length) + length;
  const bytes = Buffer.allocUnsafe(1 + sizeOfLength(delta) + delta);
  bytes[0] = PART_DELTA;
  let at = writeLength(bytes, 1, delta);
  if (choiceIndex > 0) {
    bytes[at++] = CHOICE_INDEX;
    bytes[at++] = choiceIndex;
  }
  if (partIndex > 0) {
    bytes[at++] = PART_INDEX;
    bytes[at++] = partIndex;
  }
  bytes[at++] = TEXT;
  at = writeLength(bytes, at, length);
  bytes.write(content.value, at);
  return bytes;
}

/** Bytes of a length as a varint. */
function sizeOfLength(length: number): number {
  let size = 1;
  for (let left = length; left > 0x7f; left = Math.floor(left / 0x80)) size += 1;
  return size;
}

/** Writes a length as a varint. Returns the position after it. */
function writeLength(bytes: Buffer, from: number, length: number): number {
  let at = from;
  let left = length;
  for (; left > 0x7f; left = Math.floor(left / 0x80)) bytes[at++] = (left % 0x80) | 0x80;
  bytes[at++] = left;
  return at;
}

/**
 * An undecoded request. The handler decodes it after authentication; grpc-js would answer undecodable bytes with an internal
 * error. `read` throws `invalid_request` for bytes that are not such a message, and `request_too_large` for one with too many
 * fields.
 */
export interface Encoded<T extends Message> {
  /** Size on the wire. */
  readonly bytes: number;
  /** May be called once: it releases the bytes. */
  readonly read: () => T;
  /** Releases the bytes of a request that is not read. */
  readonly release: () => void;
}

/** The definition of a service for grpc-js, from its generated descriptor. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

function methodDefinition(method: DescMethod): MethodDefinition<Encoded<Message>, Message | Buffer> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    originalName: method.localName,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message.read())),
    requestDeserialize: (bytes) => ({
      bytes: bytes.length,
      read: () => decode(method.input, bytes),
      release: () => releaseMemory([bytes]),
    }),
    // A completion's handler has encoded it, to know its size.
    responseSerialize: (message) => (Buffer.isBuffer(message) ? message : encode(method.output, message)),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function decode<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return decodeRequest(desc, bytes);
  } catch (reason) {
    if (reason instanceof Failure) throw reason;
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
}

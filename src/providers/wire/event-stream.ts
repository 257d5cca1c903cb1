import { crc32 } from "node:zlib";
import type { EventStreamCodec } from "@smithy/eventstream-codec";
import { Failure } from "../../core/failure.ts";
import { Pieces } from "../../encoding/pieces.ts";
import { truncated } from "./response-failure.ts";
import type { Framing, StreamParser } from "./response.ts";

/** A message of AWS's event stream. */
export interface EventStreamMessage {
  /** An `exception` ends the stream. */
  readonly kind: "event" | "exception";
  /** Type of the event or exception, such as `contentBlockDelta` or `throttlingException`. */
  readonly type: string;
  /** The payload: JSON. */
  readonly data: string;
}

/**
 * AWS's binary framing, `application/vnd.amazon.eventstream`: messages of a prelude (length of the message and of its headers, CRC-32),
 * headers, a payload and a CRC-32. Source: smithy.io/2.0/aws/amazon-eventstream.html. The codec is loaded on first use.
 */
export const EVENT_STREAM: Framing<EventStreamMessage> = {
  mediaType: "application/vnd.amazon.eventstream",
  async createParser() {
    const { EventStreamCodec: Codec } = await import("@smithy/eventstream-codec");
    return new EventStreamParser(new Codec(toText, (text) => Buffer.from(text)));
  },
};

const PRELUDE_BYTES = 12;
/** Size of a message without headers and payload. */
const MIN_BYTES = 16;
/**
 * Limits of a message from the service: the headers and the payload. Source: Amazon Event Stream Specification, "Message Format"
 * (smithy.io/2.0/aws/amazon-eventstream.html). It tells clients to leave the check to services. Parley checks, because a configured host
 * may be another service, and a decoded header takes many times its bytes.
 */
const MAX_HEADERS_BYTES = 128 * 1024;
const MAX_PAYLOAD_BYTES = 24 * 1024 * 1024;

class EventStreamParser implements StreamParser<EventStreamMessage> {
  readonly #codec: EventStreamCodec;
  /** Bytes of unfinished messages, joined only once the next message is whole. */
  #pieces = new Pieces();
  #size = 0;
  /** Size from which on something can be read. */
  #neededBytes = PRELUDE_BYTES;

  constructor(codec: EventStreamCodec) {
    this.#codec = codec;
  }

  get unfinishedBytes(): number {
    return this.#size;
  }

  *push(bytes: Buffer): Generator<EventStreamMessage> {
    this.#pieces.add(bytes);
    this.#size += bytes.length;
    if (this.#size < this.#neededBytes) return;
    let rest = this.#pieces.joined();
    this.#neededBytes = neededBytes(rest);
    while (rest.length >= this.#neededBytes) {
      yield* this.#decode(rest.subarray(0, this.#neededBytes));
      rest = rest.subarray(this.#neededBytes);
      this.#neededBytes = neededBytes(rest);
    }
    this.#pieces = new Pieces();
    if (rest.length > 0) this.#pieces.add(rest);
    this.#size = rest.length;
  }

  end(): EventStreamMessage[] {
    if (this.#size > 0) throw truncated();
    return [];
  }

  #decode(message: Buffer): EventStreamMessage[] {
    const { headers, body } = this.#codec.decode(message);
    const read = (name: string): string => {
      const header = Object.hasOwn(headers, name) ? headers[name] : undefined;
      return header?.type === "string" ? header.value : "";
    };
    switch (read(":message-type")) {
      case "event":
        return [{ kind: "event", type: read(":event-type"), data: toText(body) }];
      case "exception":
        return [{ kind: "exception", type: read(":exception-type"), data: toText(body) }];
      case "error": {
        const data = JSON.stringify({ message: read(":error-message") });
        return [{ kind: "exception", type: read(":error-code"), data }];
      }
      default:
        return [];
    }
  }
}

/** Length of the message at the start of `bytes`, or of an incomplete prelude. Throws `upstream_protocol` for invalid bytes. */
function neededBytes(bytes: Buffer): number {
  if (bytes.length < PRELUDE_BYTES) return PRELUDE_BYTES;
  // The codec checks only whole messages. With a broken length, the reader would wait for bytes that never come.
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw broken();
  const length = bytes.readUInt32BE(0);
  const headersLength = bytes.readUInt32BE(4);
  const payloadLength = length - headersLength - MIN_BYTES;
  if (payloadLength < 0) throw broken();
  if (headersLength > MAX_HEADERS_BYTES || payloadLength > MAX_PAYLOAD_BYTES)
    throw new Failure("upstream_protocol", "The upstream provider sent an event larger than this gateway reads.");
  return length;
}

function broken(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's event stream is damaged.");
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

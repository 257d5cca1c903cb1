import { connect, type Socket } from "node:net";
import { encodeFrame, FRAME } from "../../../bench/load/http2-frames.ts";

/** Frame types of RFC 9113 used by clients, and two more. */
export const TYPE = { ...FRAME, priority: 2, continuation: 9 } as const;

const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const HEADER_BYTES = 9;

/** Connection preface. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export interface FrameHead {
  readonly type: number;
  readonly flags?: number;
  readonly stream?: number;
}

/** Encodes a frame, valid or not. */
export function frame({ type, flags = 0, stream = 0 }: FrameHead, payload: Buffer = Buffer.alloc(0)): Buffer {
  return encodeFrame({ type, flags, stream, payload });
}

/** SETTINGS frame with these values, by identifier. */
export function settings(values: readonly (readonly [id: number, value: number])[] = []): Buffer {
  const payload = Buffer.alloc(6 * values.length);
  for (const [index, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, 6 * index);
    payload.writeUInt32BE(value, 6 * index + 2);
  }
  return frame({ type: TYPE.settings }, payload);
}

const SETTINGS_ACK = frame({ type: TYPE.settings, flags: 1 });
/** SETTINGS_INITIAL_WINDOW_SIZE. */
export const INITIAL_WINDOW_SIZE = 4;

/** A frame whose payload is a 32-bit number: WINDOW_UPDATE, RST_STREAM. */
function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function windowUpdate(stream: number, increment: number): Buffer {
  return frame({ type: TYPE.windowUpdate, stream }, number(increment));
}

const CANCEL = 8;

export function resetStream(stream: number): Buffer {
  return frame({ type: TYPE.reset, stream }, number(CANCEL));
}

/** Encodes headers in HPACK as literals without indexing. */
export function headerBlock(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), hpackText(name), hpackText(value)]));
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([hpackNumber(bytes.length), bytes]);
}

/** HPACK integer with a 7-bit prefix. */
function hpackNumber(value: number): Buffer {
  if (value < 0x7f) return Buffer.from([value]);
  const bytes = [0x7f];
  let left = value - 0x7f;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80);
  bytes.push(left);
  return Buffer.from(bytes);
}

/** Headers of a gRPC call. */
export function grpcHeaders(path: string, more: Readonly<Record<string, string>> = {}): [string, string][] {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "parley.example"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...Object.entries(more),
  ];
}

/** HEADERS frame that opens a stream; a body follows unless `ends`. */
export function headersFrame(stream: number, block: Buffer, ends: "ends" | "body follows"): Buffer {
  return frame({ type: TYPE.headers, flags: END_HEADERS | (ends === "ends" ? END_STREAM : 0), stream }, block);
}

export function dataFrame(stream: number, payload: Buffer, ends: "ends" | "more follows"): Buffer {
  return frame({ type: TYPE.data, flags: ends === "ends" ? END_STREAM : 0, stream }, payload);
}

/** gRPC message with its prefix: compression flag and length, which a test may set to a wrong value. */
export function grpcMessage(
  payload: Uint8Array,
  { compressed = false, length = payload.length }: { readonly compressed?: boolean; readonly length?: number } = {},
): Buffer {
  return Buffer.concat([Buffer.from([compressed ? 1 : 0]), number(length), payload]);
}

/** A received frame. */
export interface ArrivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A raw HTTP/2 connection: sends only what it is given, and no acknowledgements. */
export class RawHttp2 {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  #closed = false;
  /** Resolves when the connection is closed. */
  readonly end: Promise<void>;
  /** All received frames; DATA without payloads. */
  readonly arrived: ArrivedFrame[] = [];

  /** `to`: a port of this machine, or a connection, such as one with TLS. */
  constructor(to: number | Socket) {
    this.#socket = typeof to === "number" ? connect({ port: to, host: "127.0.0.1", noDelay: true }) : to;
    this.#socket.on("data", (bytes: Buffer) => this.#take(bytes));
    this.end = new Promise((resolve) =>
      this.#socket.once("close", () => {
        this.#closed = true;
        resolve();
      }),
    );
    // "close" follows a reset.
    this.#socket.on("error", () => undefined);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends the preface and SETTINGS. */
  hello(values: readonly (readonly [id: number, value: number])[] = []): this {
    return this.write(Buffer.concat([PREFACE, settings(values), SETTINGS_ACK]));
  }

  write(bytes: Buffer): this {
    if (!this.#closed) this.#socket.write(bytes);
    return this;
  }

  /** Writes, and waits until the bytes are sent; never resolves when the server reads nothing. */
  send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed) resolve();
      else this.#socket.write(bytes, () => resolve());
    });
  }

  /** Stops reading. */
  pause(): this {
    this.#socket.pause();
    return this;
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      if (this.#rest.length < HEADER_BYTES) return;
      const end = HEADER_BYTES + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const [type, flags] = [this.#rest[3]!, this.#rest[4]!];
      const payload = Buffer.from(this.#rest.subarray(HEADER_BYTES, type === TYPE.data ? HEADER_BYTES : end));
      this.arrived.push({ type, flags, stream: this.#rest.readUInt32BE(5) & 0x7fff_ffff, payload });
      this.#rest = this.#rest.subarray(end);
    }
  }
}

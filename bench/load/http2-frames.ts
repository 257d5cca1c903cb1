/** Frame types of a gRPC client. */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;

/** Flags of frames; `ack` is of SETTINGS and PING only. */
export const FLAG = { ack: 0x1, endStream: 0x1, endHeaders: 0x4 } as const;

const HEADER_BYTES = 9;
const MAX_WINDOW = 0x7fff_ffff;
const DEFAULT_WINDOW = 0xffff;
const SETTING_HEADER_TABLE_SIZE = 1;
const SETTING_ENABLE_PUSH = 2;
const SETTING_INITIAL_WINDOW_SIZE = 4;

/** One frame; stream 0 is the connection. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A frame's bytes. */
export function encodeFrame({ type, flags, stream, payload }: Frame): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, HEADER_BYTES);
  return bytes;
}

/** Splits a connection's bytes into frames, across read boundaries. */
export class FrameReader {
  #pending: Buffer | undefined;

  /** Calls back for each frame that these bytes complete. Payloads are views, valid during the call. */
  push(bytes: Buffer, onFrame: (frame: Frame) => void): void {
    const input = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes]);
    let offset = 0;
    while (input.length - offset >= HEADER_BYTES) {
      const end = offset + HEADER_BYTES + input.readUIntBE(offset, 3);
      if (end > input.length) break;
      onFrame({
        type: input[offset + 3]!,
        flags: input[offset + 4]!,
        stream: input.readUInt32BE(offset + 5) & MAX_WINDOW,
        payload: input.subarray(offset + HEADER_BYTES, end),
      });
      offset = end;
    }
    // Copied, because the next read may overwrite the buffer.
    this.#pending = offset < input.length ? Buffer.from(input.subarray(offset)) : undefined;
  }
}

/** A client's preface: no server push, no dynamic header table, and maximum windows. */
export function clientPreface(): Buffer {
  const settings = Buffer.alloc(18);
  [
    [SETTING_HEADER_TABLE_SIZE, 0],
    [SETTING_ENABLE_PUSH, 0],
    [SETTING_INITIAL_WINDOW_SIZE, MAX_WINDOW],
  ].forEach(([name, value], index) => {
    settings.writeUInt16BE(name!, index * 6);
    settings.writeUInt32BE(value!, index * 6 + 2);
  });
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    encodeFrame({ type: FRAME.settings, flags: 0, stream: 0, payload: settings }),
    windowUpdate(MAX_WINDOW - DEFAULT_WINDOW),
  ]);
}

/** A WINDOW_UPDATE that allows the server to send this many more bytes on the connection. */
export function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return encodeFrame({ type: FRAME.windowUpdate, flags: 0, stream: 0, payload });
}

/** Indexes of HPACK's static table. */
const METHOD_POST = 0x83;
const SCHEME_HTTP = 0x86;

/** The headers of a gRPC call as HPACK: names of the static table where possible, no dynamic table, no Huffman coding. */
export function grpcHeaders({ path, authority, key }: Readonly<Record<"path" | "authority" | "key", string>>): Buffer {
  return Buffer.concat([
    Buffer.from([METHOD_POST, SCHEME_HTTP, 0x04]),
    text(path),
    Buffer.from([0x01]),
    text(authority),
    Buffer.from([0x0f, 31 - 15]),
    text("application/grpc"),
    Buffer.from([0x0f, 23 - 15]),
    text(`Bearer ${key}`),
    Buffer.from([0x00]),
    text("te"),
    text("trailers"),
  ]);
}

/** A string of at most 126 characters: longer lengths need another encoding. */
function text(value: string): Buffer {
  if (value.length > 126) throw new Error(`too long for a short HPACK string: ${value.length}`);
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, "latin1")]);
}

/** One uncompressed gRPC message with its prefix. */
export function grpcMessage(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

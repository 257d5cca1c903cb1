import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gunzip as gunzipOrThrow } from "node:zlib";
import { Failure } from "../../core/failure.ts";
import { Pieces } from "../../encoding/pieces.ts";
import type { OpenCall } from "../calls.ts";

/** A request whose body is read, and its response. */
export interface BodySource {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Refuses a body that is declared as compressed. */
export function requireUncompressed({ headers }: IncomingMessage): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    throw new Failure("invalid_request", "The request body must not be compressed (content-encoding).");
}

/** First two bytes of a gzip member. */
const GZIP = 0x1f8b;
/** Size of the shortest gzip member: header, empty block, trailer. */
const MIN_GZIP_BYTES = 20;

/**
 * Decompresses one gzip member (RFC 1952). A few bytes may inflate to gigabytes: the size that its trailer declares is
 * measured before, and the content must have that size. Throws `invalid_request`, `request_too_large` or what the meter throws.
 */
export async function gunzip(
  compressed: Buffer,
  { maxBytes, meter }: { readonly maxBytes: number; readonly meter?: BodyMeter },
): Promise<Buffer> {
  if (compressed.length < MIN_GZIP_BYTES || compressed.readUInt16BE() !== GZIP)
    throw new Failure("invalid_request", NOT_GZIP);
  const bytes = compressed.readUInt32LE(compressed.length - 4);
  if (bytes > maxBytes) throw tooLarge(maxBytes);
  meter?.received(compressed.length + bytes);
  // zlib takes no limit of 0.
  const content = await promisify(gunzipOrThrow)(compressed, { maxOutputLength: Math.max(bytes, 1) }).catch(
    () => undefined,
  );
  if (content?.length !== bytes) throw new Failure("invalid_request", NOT_GZIP);
  return content;
}

const NOT_GZIP = "The request body is not one gzip member.";

/** Counts received bytes; throws when they exceed a limit. */
export interface BodyMeter {
  received(bytes: number): void;
}

/** Declared length of the body; undefined for chunked transfer encoding. */
export function declaredBytes({ headers }: IncomingMessage): number | undefined {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : undefined;
}

/** Larger bodies are read into a buffer of their declared length: joining pieces would need twice the memory. */
const PIECES_BYTES = 256 * 1024;

/**
 * Reads a body. Throws `request_too_large`, `invalid_request` for a body in tiny chunks, what the meter throws (default: no
 * meter), or the call's reason when the caller disconnects.
 */
export function readBody(
  { request, response }: BodySource,
  { signal }: OpenCall,
  { maxBytes, meter }: { readonly maxBytes: number; readonly meter?: BodyMeter },
): Promise<Buffer> {
  const declared = declaredBytes(request) ?? 0;
  if (declared > maxBytes) return Promise.reject(tooLarge(maxBytes));
  if (request.headers.expect !== undefined) response.writeContinue();
  return new Promise((resolve, reject) => {
    const whole = declared > PIECES_BYTES ? Buffer.allocUnsafeSlow(declared) : undefined;
    const pieces = new Pieces();
    let size = 0;
    const stop = (): void => settle(() => reject(signal.reason));
    const fail = (reason: unknown): void => (reason instanceof Failure ? settle(() => reject(reason)) : stop());
    const settle = (done: () => void): void => {
      request.off("data", take).off("end", finish).off("error", fail);
      signal.removeEventListener("abort", stop);
      done();
    };
    const take = (piece: Buffer): void => {
      const from = size;
      size += piece.length;
      try {
        if (size > maxBytes) throw tooLarge(maxBytes);
        meter?.received(size);
      } catch (reason) {
        return settle(() => reject(reason));
      }
      if (whole === undefined) pieces.add(piece);
      else piece.copy(whole, from);
    };
    const finish = (): void => settle(() => resolve(whole ?? pieces.joined()));
    if (signal.aborted) return stop();
    request.on("data", take).on("end", finish).on("error", fail);
    // A body that has arrived is read within this turn, or ends with an error: a signal listener would cost more than reading.
    if (!request.complete) signal.addEventListener("abort", stop, { once: true });
  });
}

/** The failure of a body that is larger than `maxBytes`. */
export function tooLarge(maxBytes: number): Failure {
  const kib = maxBytes / 1024;
  const limit = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`;
  return new Failure("request_too_large", `The request body is larger than ${limit}.`);
}

/** Time in which the rest of a refused body is read and dropped, so that the caller can read the refusal. */
const LINGER_MS = 1000;
/** Bodies up to this size are read to the end when their request is refused temporarily. */
const DROPPED_BYTES = 64 * 1024;
/** Temporary failures, with which requests are refused before their bodies are read. */
const TEMPORARY: ReadonlySet<Failure["code"]> = new Set(["overloaded", "rate_limited"]);

/** Whether a refused request has more of its body to come than Node should read and drop: its connection must be closed. */
export function hasUnreadBody({ complete, headers }: IncomingMessage, { code }: Failure): boolean {
  const length = Number(headers["content-length"] ?? 0);
  // A client that waits for `100 Continue` may never send its body.
  const mayNotCome = headers.expect !== undefined && length > 0;
  // A temporarily refused caller keeps its connection.
  const dropped = TEMPORARY.has(code) ? DROPPED_BYTES : 0;
  return !complete && (headers["transfer-encoding"] !== undefined || mayNotCome || length > dropped);
}

/**
 * Ends a written response after the rest of the request's body, or closes the connection after a while. Closing with unread
 * bytes would reset the connection, and the caller might not read the response.
 */
export function endAfterBody({ request, response }: BodySource): void {
  // The guard of a stream bounds the rest of its request.
  if (request.httpVersionMajor === 2) return void response.end();
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("end", () => response.end());
  request.once("close", () => clearTimeout(timer));
  request.resume();
}

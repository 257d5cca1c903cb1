import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../../core/failure.ts";
import type { OpenCall } from "../calls.ts";

/** One request whose body is to be read, and the answer it will have. */
export interface BodySource {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Refuses a body that says in this header that it is compressed: a few bytes may be gigabytes. */
export function requireUncompressed(
  { headers }: IncomingMessage,
  header: "content-encoding" | "connect-content-encoding",
): void {
  const encoding = headers[header];
  if (encoding !== undefined && encoding !== "identity")
    throw new Failure("invalid_request", `The request body must not be compressed (${header}).`);
}

/** Reads a body. Throws `request_too_large` or, when the caller leaves half-way, the call's reason. */
export function readBody({ request, response }: BodySource, { signal }: OpenCall, maxBytes: number): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) return Promise.reject(tooLarge(maxBytes));
  if (request.headers.expect !== undefined) response.writeContinue();
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const stop = (): void => settle(() => reject(signal.reason));
    const settle = (done: () => void): void => {
      request.off("data", take).off("end", finish).off("error", stop);
      signal.removeEventListener("abort", stop);
      done();
    };
    const take = (piece: Buffer): void => {
      size += piece.length;
      if (size > maxBytes) settle(() => reject(tooLarge(maxBytes)));
      else pieces.push(piece);
    };
    const finish = (): void => settle(() => resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)));
    if (signal.aborted) return stop();
    request.on("data", take).on("end", finish).on("error", stop);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** Refuses a body that is larger than this. */
export function tooLarge(maxBytes: number): Failure {
  const kib = maxBytes / 1024;
  const limit = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`;
  return new Failure("request_too_large", `The request body is larger than ${limit}.`);
}

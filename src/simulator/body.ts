import type { IncomingMessage } from "node:http";
import { Refusal } from "./refusal.ts";

export const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The request's body as JSON. Throws `Refusal`: 413 beyond 64 MiB, 400 when it is not JSON in UTF-8. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const tooLarge = new Refusal(413, "Request exceeds the maximum size");
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge;
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  // A plain `break` or `throw` in the loop would destroy the socket that the refusal still has to travel on.
  for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    sizeBytes += piece.length;
    if (sizeBytes > MAX_BODY_BYTES) throw tooLarge;
    pieces.push(piece);
  }
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces)));
    return parsed;
  } catch {
    throw new Refusal(400, "The request body is not valid JSON.");
  }
}

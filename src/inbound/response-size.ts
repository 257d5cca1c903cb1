import { Failure } from "../core/failure.ts";

/** Throws `response_too_large` for a completion that is larger than the client can receive. */
export function requireResponseSize(bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new Failure(
    "response_too_large",
    `The completion has ${bytes} bytes, and max_response_bytes is ${maxBytes}. Use Stream, or raise max_response_bytes and the client's own limit.`,
  );
}

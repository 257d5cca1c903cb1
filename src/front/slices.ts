import type { ServerResponse } from "node:http";
import type { Clock } from "../core/clock.ts";
import type { OpenCall } from "../edge/calls.ts";
import { drained } from "../edge/drain.ts";

/** What is written at once: a reader that takes this much in half a minute is slow, but there. */
const SLICE_BYTES = 64 * 1024;

/** Whether a text is written in one piece. */
export function isSmall(text: string): boolean {
  return text.length <= SLICE_BYTES / 4;
}

/** Writes a long text as fast as it is read. Throws the call's reason when the reader leaves, or reads nothing. */
export async function writeSlices(
  response: ServerResponse,
  text: string,
  { clock, call }: { readonly clock: Clock; readonly call: OpenCall },
): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    const slice = bytes.subarray(at, at + SLICE_BYTES);
    if (!response.write(slice)) await drained(response, { clock, call, bytes: slice.length });
  }
}

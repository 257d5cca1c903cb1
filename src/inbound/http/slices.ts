import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Answering } from "../calls.ts";
import { drained } from "../drain.ts";

/** What is written at once: a reader that takes this much in half a minute is slow, but there. */
const SLICE_BYTES = 64 * 1024;

/** Whether a text is written in one piece. */
export function isSmall(text: string): boolean {
  return text.length <= SLICE_BYTES / 4;
}

/** Writes many bytes as fast as they are read. Throws the call's reason when the reader leaves, or reads nothing. */
export async function writeSlices(
  response: ServerResponse,
  pieces: readonly Buffer[],
  { clock, call }: { readonly clock: Clock; readonly call: Answering },
): Promise<void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      if (response.write(piece.subarray(at, at + SLICE_BYTES))) continue;
      await drained(response, { clock, call, bytes: SLICE_BYTES });
    }
  }
}

/**
 * Gives the memory of large pieces back at once. They must be out, and nobody may look at them again: they are empty
 * then. V8 would find them in a collection of the whole heap, which costs more than all else that is done with them.
 */
export function release(pieces: readonly Buffer[]): void {
  for (const { buffer, byteLength } of pieces) {
    // Smaller ones may share their memory with others.
    if (byteLength > buffer.byteLength / 2 && buffer instanceof ArrayBuffer) buffer.transfer(0);
  }
}

import type { Clock } from "../core/clock.ts";
import type { Answering } from "./calls.ts";

/** How long a caller may not read before it is taken for gone. */
export const WRITE_STALL_MS = 30_000;

/** A reader is not gone because a large message takes long: this slow it may be, in bytes per millisecond. */
const SLOWEST_READER = 16;

/** Something that says when it can be written to again: a response, a gRPC call. */
export interface Drainable {
  once(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** Whose answer is written, and how many bytes were written at once. */
export interface Pace {
  readonly clock: Clock;
  readonly call: Answering;
  readonly bytes: number;
}

/** Waits until the caller has read enough. Throws the call's reason; a caller that reads nothing at all has left. */
export async function drained(sink: Drainable, { clock, call, bytes }: Pace): Promise<void> {
  const { signal } = call;
  const cancelStall = clock.after(WRITE_STALL_MS + bytes / SLOWEST_READER, () => call.leave());
  try {
    await new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const go = (): void => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = (): void => {
        sink.off("drain", go);
        reject(signal.reason);
      };
      sink.once("drain", go);
      signal.addEventListener("abort", stop, { once: true });
    });
  } finally {
    cancelStall();
  }
}

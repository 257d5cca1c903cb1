import type { Clock } from "../core/clock.ts";
import type { Answering } from "./calls.ts";

/** Time without reading after which a caller counts as disconnected. */
export const WRITE_STALL_MS = 30_000;

/** Slowest accepted reading of a large message, in bytes per millisecond. */
export const SLOWEST_READER = 16;

/** A writable with back-pressure: a response or a gRPC call. */
export interface Drainable {
  once(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** The call whose answer is written, and the bytes of the last write. */
export interface Pace {
  readonly clock: Clock;
  readonly call: Answering;
  readonly bytes: number;
}

/** Waits until the caller has read enough. Throws the call's reason; a caller that reads nothing counts as disconnected. */
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
    call.wrote(bytes);
  } finally {
    cancelStall();
  }
}

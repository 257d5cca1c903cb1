import type { Clock } from "../core/clock.ts";
import type { OpenCall } from "./calls.ts";

/** How long a caller may not read a byte of its answer before it is taken for gone. */
export const WRITE_STALL_MS = 30_000;

/** Something that says when it can be written to again: a response, a gRPC call. */
export interface Drainable {
  once(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** Waits until the caller has read enough. Throws the call's reason; a caller that reads nothing at all has left. */
export async function drained(sink: Drainable, { clock, call }: { clock: Clock; call: OpenCall }): Promise<void> {
  const { signal } = call;
  const cancelStall = clock.after(WRITE_STALL_MS, () => call.leave());
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

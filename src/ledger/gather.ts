import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, sleep } from "../core/clock.ts";

/** Waits until the oldest waiting item has the age `intervalMs`; with an interval of 0, until the end of the event loop turn. */
export function gather(
  oldest: { readonly sinceMs: number },
  { clock, intervalMs }: { readonly clock: Clock; readonly intervalMs: number },
): Promise<void> {
  const leftMs = oldest.sinceMs + intervalMs - clock.monotonic();
  return leftMs > 0 ? sleep(clock, leftMs) : nextTurn();
}

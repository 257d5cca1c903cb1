import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Store } from "../../src/store/store.ts";

/** Reads from the store in a loop; returns the number of reads and the event-loop delay (p99.9). */
export async function readWhile(
  { keys }: Store,
  goesOn: () => boolean,
): Promise<{ readonly reads: number; readonly loopDelayMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let reads = 0;
  while (goesOn()) {
    await keys.list();
    reads++;
  }
  delay.disable();
  return { reads, loopDelayMs: delay.percentile(99.9) / 1e6 };
}

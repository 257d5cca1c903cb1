import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";

/** For less than this nothing is collected. */
const WORTH_BYTES = 4 * 1024 * 1024;

/** V8 keeps pages that it has emptied for some seconds, and gives them back when it collects again, and again after that. */
const MORE_LOOKS = 3;
const LOOK_MS = 5_000;

/** Collects garbage now, as Node does it with `--expose-gc`; undefined without. */
export type CollectGarbage = NonNullable<typeof globalThis.gc>;

/**
 * Collects all garbage of this thread, and shrinks its heap to what is left. What is compiled stays: V8's own way of giving
 * back all that can be had ("last resort") drops it, and who comes after the pause would wait until it is made anew.
 */
export async function shrinkHeap(collect: CollectGarbage, signal?: AbortSignal): Promise<void> {
  // Otherwise V8 moves together what is left on nearly empty pages, but not on all.
  setFlagsFromString("--compact-on-every-full-gc");
  collect({ type: "major", execution: "sync", flavor: "regular" });
  setFlagsFromString("--no-compact-on-every-full-gc");
  for (let look = 0; look < MORE_LOOKS; look++) {
    if (signal?.aborted === true) return;
    await delay(LOOK_MS, undefined, { ref: false, signal }).catch(() => undefined);
    // Takes a millisecond, so it does not matter if there is something to do again.
    collect({ type: "minor", execution: "sync" });
  }
}

/**
 * Gives back what V8 keeps in the heap of this thread, which has one of its own, when the thread has had nothing to do for
 * so long: by itself V8 collects when something is allocated, so never while nothing is done. Answers with what is to be
 * called for each piece of work. Without `node --expose-gc` nothing is given back.
 */
export function giveBackWhenIdle(idleMs: number): () => void {
  const { gc } = globalThis;
  if (gc === undefined) return () => undefined;
  let leastBytes = 0;
  const giveBack = async (): Promise<void> => {
    if (process.memoryUsage().heapTotal < leastBytes + WORTH_BYTES) return;
    await shrinkHeap(gc);
    leastBytes = process.memoryUsage().heapTotal;
  };
  const timer = setTimeout(() => void giveBack(), idleMs).unref();
  return () => void timer.refresh();
}

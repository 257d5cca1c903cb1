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
  collectAndCompact(collect);
  for (let look = 0; look < MORE_LOOKS; look++) {
    await delay(LOOK_MS, undefined, { ref: false, signal }).catch(() => undefined);
    if (signal?.aborted === true) return;
    // Takes a millisecond, so it does not matter if there is something to do again.
    collect({ type: "minor", execution: "sync" });
  }
}

/**
 * Without the flag V8 moves together what is left on nearly empty pages, but not on all. It is the whole process's, and looked
 * at when a collection begins: another thread that collects at this moment moves more than it would, or less.
 */
function collectAndCompact(collect: CollectGarbage): void {
  setFlagsFromString("--compact-on-every-full-gc");
  try {
    collect({ type: "major", execution: "sync", flavor: "regular" });
  } finally {
    setFlagsFromString("--no-compact-on-every-full-gc");
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
  let works = 0;
  let isShrinking = false;
  const giveBack = async (): Promise<void> => {
    if (isShrinking || process.memoryUsage().heapTotal < leastBytes + WORTH_BYTES) return;
    isShrinking = true;
    const worksBefore = works;
    await shrinkHeap(gc);
    isShrinking = false;
    // What there is after more work says nothing about how little there can be.
    if (works === worksBefore) leastBytes = process.memoryUsage().heapTotal;
    // The pause after that work may have been over before this was.
    else timer.refresh();
  };
  const timer = setTimeout(() => void giveBack(), idleMs).unref();
  return () => {
    works += 1;
    timer.refresh();
  };
}

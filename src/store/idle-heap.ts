/** For less than this nothing is collected. */
const WORTH_BYTES = 4 * 1024 * 1024;

/**
 * Gives back what V8 keeps in the heap of this thread, which has one of its own, when the thread has had nothing to do for
 * so long: by itself V8 collects when something is allocated, so never while nothing is done. Answers with what is to be
 * called for each piece of work. Without `node --expose-gc` nothing is given back.
 */
export function giveBackWhenIdle(idleMs: number): () => void {
  const { gc } = globalThis;
  if (gc === undefined) return () => undefined;
  let leastBytes = 0;
  const timer = setTimeout(() => {
    if (process.memoryUsage().heapTotal < leastBytes + WORTH_BYTES) return;
    // Any other collection leaves the young generation as large as the work has made it.
    gc({ type: "major", execution: "sync", flavor: "last-resort" });
    leastBytes = process.memoryUsage().heapTotal;
  }, idleMs).unref();
  return () => void timer.refresh();
}

import type { Calls } from "../edge/calls.ts";
import { shrinkHeap } from "../store/idle-heap.ts";
import type { Chore } from "./housekeeping.ts";

const LOOK_MS = 10_000;
/** For less than this nobody is made to wait. */
const WORTH_BYTES = 16 * 1024 * 1024;
const MIB = 1024 * 1024;

export interface IdleMemoryPorts {
  readonly calls: Pick<Calls, "active" | "opened">;
  /** How large V8's heap is, in bytes, with what is free in it. */
  readonly heapBytes: () => number;
  /** Collects all garbage and shrinks the heap to what is left. Undefined without `node --expose-gc`. */
  readonly collect: ((signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * Gives back to the machine, in the first pause of eight seconds or more after a busy time (or the start), the memory that
 * V8 keeps in case that it is needed again: by itself it collects when something is allocated, so never while nothing is
 * done. It takes a tenth of a second, in which a request would wait; therefore only when no call is under way, and when
 * the heap has grown enough.
 */
export function idleMemoryChore({ calls, heapBytes, collect }: IdleMemoryPorts): Chore {
  let opened = calls.opened;
  let leastBytes = 0;
  return {
    name: "give memory back after a busy time, in MiB",
    everyMs: LOOK_MS,
    async run(signal) {
      const isIdle = calls.active === 0 && calls.opened === opened;
      opened = calls.opened;
      const before = heapBytes();
      if (collect === undefined || !isIdle || before < leastBytes + WORTH_BYTES) return 0;
      await collect(signal);
      const left = heapBytes();
      // What there is after more calls says nothing about how little there can be.
      if (calls.opened === opened) leastBytes = left;
      return Math.max(0, Math.round((before - left) / MIB));
    },
  };
}

const { gc } = globalThis;

/** The heap of this process. */
export const ownHeap: Pick<IdleMemoryPorts, "heapBytes" | "collect"> = {
  heapBytes: () => process.memoryUsage().heapTotal,
  collect: gc && ((signal) => shrinkHeap(gc, signal)),
};

import { CostBook, type CostSummary } from "./costs.ts";
import { type CallFrame, type Place, placeOf } from "./place.ts";

/** The used part of a `.heapprofile`: a tree of calls. */
export interface AllocationProfile {
  readonly head: AllocationNode;
}

/** A function as called from one place. */
export interface AllocationNode {
  readonly callFrame: CallFrame;
  /** Bytes that it has allocated itself. */
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}

/** Where memory of V8's heap was allocated. */
export interface AllocationSummary extends CostSummary {
  readonly bytes: number;
}

/** Summarises an allocation profile. `root` is the project's folder; only `src/` counts as Parley's code. */
export function summariseAllocations({ head }: AllocationProfile, root: string): AllocationSummary {
  const book = new CostBook();
  const waiting: { node: AllocationNode; caller: Place | undefined }[] = [{ node: head, caller: undefined }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node } = next;
    const place = placeOf(node.callFrame, root);
    const caller = place.isOurs ? place : next.caller;
    if (node.selfSize > 0) book.add(node.selfSize, place, caller);
    waiting.push(...node.children.map((child) => ({ node: child, caller })));
  }
  return { bytes: book.total, ...book.summary() };
}

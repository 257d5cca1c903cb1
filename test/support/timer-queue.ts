/** A timer. */
interface Timer {
  readonly dueMs: number;
  /** Timers with the same due time run in the order they were set. */
  readonly order: number;
  readonly callback: () => void;
  /** Neither run nor cancelled. */
  isSet: boolean;
}

/** Cancelled timers are removed from the heap when they outnumber the others by this. */
const MAX_CANCELLED = 1_000;

/** Timers by due time, as a binary heap, because a simulation has thousands. */
export class TimerQueue {
  #heap: Timer[] = [];
  #size = 0;
  #orders = 0;

  /** Number of pending timers. */
  get size(): number {
    return this.#size;
  }

  /** Due time of the next timer; Infinity without any. */
  get dueMs(): number {
    return this.#next()?.dueMs ?? Infinity;
  }

  /** Sets a timer; returns a function that cancels it. */
  add(dueMs: number, callback: () => void): () => void {
    const timer: Timer = { dueMs, order: this.#orders, callback, isSet: true };
    this.#orders += 1;
    this.#size += 1;
    this.#push(timer);
    return () => {
      if (!timer.isSet) return;
      timer.isSet = false;
      this.#size -= 1;
      if (this.#heap.length > 2 * this.#size + MAX_CANCELLED) this.#clean();
    };
  }

  /** Removes and returns the next timer; undefined without any. */
  take(): Pick<Timer, "dueMs" | "callback"> | undefined {
    const timer = this.#next();
    if (timer === undefined) return undefined;
    this.#pop();
    timer.isSet = false;
    this.#size -= 1;
    return timer;
  }

  #next(): Timer | undefined {
    while (this.#heap[0]?.isSet === false) this.#pop();
    return this.#heap[0];
  }

  #clean(): void {
    // A sorted list is a valid heap.
    this.#heap = this.#heap.filter(({ isSet }) => isSet).toSorted((one, other) => (isBefore(one, other) ? -1 : 1));
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(timer, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}

/** What goes off when. */
interface Timer {
  readonly dueMs: number;
  /** Of timers that are due at the same time, the one that was set first goes first. */
  readonly order: number;
  readonly callback: () => void;
  /** Neither gone off nor called off. */
  isSet: boolean;
}

/** Those that were called off are taken out of the heap when there are this many more of them than of the others. */
const MAX_LITTER = 1_000;

/** Timers by their time: a binary heap, so that a world with thousands of them does not look at all for each that goes off. */
export class TimerQueue {
  #heap: Timer[] = [];
  #size = 0;
  #orders = 0;

  /** How many timers are set. */
  get size(): number {
    return this.#size;
  }

  /** When the next one is due; Infinity without any. */
  get dueMs(): number {
    return this.#next()?.dueMs ?? Infinity;
  }

  /** Sets a timer; the returned function calls it off. */
  add(dueMs: number, callback: () => void): () => void {
    const timer: Timer = { dueMs, order: this.#orders, callback, isSet: true };
    this.#orders += 1;
    this.#size += 1;
    this.#push(timer);
    return () => {
      if (!timer.isSet) return;
      timer.isSet = false;
      this.#size -= 1;
      if (this.#heap.length > 2 * this.#size + MAX_LITTER) this.#clean();
    };
  }

  /** Takes out the next one; undefined without any. */
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
    // A sorted list is a heap.
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

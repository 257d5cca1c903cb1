/** Who waits in a `FairQueue`. */
export interface Waiter {
  /** Whose turn it takes. */
  readonly key: string;
}

/** Waiters of many keys. The keys take turns, each with its oldest waiter, so that none waits for another's crowd. */
export class FairQueue<W extends Waiter> {
  /** In the order in which the keys have their turns; none is empty. */
  readonly #queues = new Map<string, Set<W>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(waiter: W): void {
    const queue = this.#queues.get(waiter.key);
    if (queue === undefined) this.#queues.set(waiter.key, new Set([waiter]));
    else queue.add(waiter);
    this.#size += 1;
  }

  /** Takes the oldest waiter of the first key in turn whose oldest waiter may have it (default: any); undefined without one. */
  next(mayHave?: (waiter: W) => boolean): W | undefined {
    for (const [key, queue] of this.#queues) {
      const [oldest] = queue;
      if (mayHave?.(oldest!) === false) continue;
      this.remove(oldest!);
      // Its next turn comes after everybody else's, if there is anybody else.
      if (this.#queues.size > 1 && this.#queues.delete(key)) this.#queues.set(key, queue);
      return oldest;
    }
    return undefined;
  }

  /** The oldest waiter of each key. */
  *oldest(): Generator<W> {
    for (const [first] of this.#queues.values()) yield first!;
  }

  /** Takes out one that has not had its turn. Without effect when it is not there. */
  remove(waiter: W): void {
    const queue = this.#queues.get(waiter.key);
    if (queue?.delete(waiter) !== true) return;
    this.#size -= 1;
    if (queue.size === 0) this.#queues.delete(waiter.key);
  }

  /** Those that wait longest of each key for which `isLate` holds, and after them the next ones. */
  takeLate(isLate: (waiter: W) => boolean): W[] {
    const late: W[] = [];
    for (const queue of this.#queues.values())
      for (const waiter of queue) {
        if (!isLate(waiter)) break;
        late.push(waiter);
      }
    for (const waiter of late) this.remove(waiter);
    return late;
  }

  /** Takes all, in no order that matters. */
  takeAll(): W[] {
    return this.takeLate(() => true);
  }

  /** How many wait of a key. */
  sizeOf(key: string): number {
    return this.#queues.get(key)?.size ?? 0;
  }

  /** Of how many keys anybody waits. */
  get keys(): number {
    return this.#queues.size;
  }
}

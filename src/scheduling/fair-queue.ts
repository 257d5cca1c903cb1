/** An entry of a `FairQueue`. */
export interface Waiter<K = string> {
  /** Key under which it is queued. */
  readonly key: K;
}

/** A queue per key, served round robin with the oldest waiter of each, so that no key waits for the queue of another. */
export class FairQueue<W extends Waiter<unknown>> {
  /** Non-empty queues in round-robin order. */
  readonly #queues = new Map<W["key"], Set<W>>();
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

  /** Takes the oldest waiter of the next key whose oldest waiter passes `mayHave` (default: any); undefined without one. */
  next(mayHave?: (waiter: W) => boolean): W | undefined {
    for (const [key, queue] of this.#queues) {
      const [oldest] = queue;
      if (mayHave?.(oldest!) === false) continue;
      this.remove(oldest!);
      // The key goes to the end of the round.
      if (this.#queues.size > 1 && this.#queues.delete(key)) this.#queues.set(key, queue);
      return oldest;
    }
    return undefined;
  }

  /** The oldest waiter of each key. */
  *oldest(): Generator<W> {
    for (const [first] of this.#queues.values()) yield first!;
  }

  /** Removes a waiter. Without effect when it is not queued. */
  remove(waiter: W): void {
    const queue = this.#queues.get(waiter.key);
    if (queue?.delete(waiter) !== true) return;
    this.#size -= 1;
    if (queue.size === 0) this.#queues.delete(waiter.key);
  }

  /** Takes waiters from the front of each queue while `isLate` holds. */
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

  /** Takes all waiters, in any order. */
  takeAll(): W[] {
    return this.takeLate(() => true);
  }

  /** Takes the newest waiter of the key with the most waiters. Linear in the number of keys. */
  takeNewestOfMost(): W | undefined {
    const { most } = this;
    for (const queue of this.#queues.values()) {
      if (queue.size < most) continue;
      const newest = [...queue].at(-1)!;
      this.remove(newest);
      return newest;
    }
    return undefined;
  }

  /** Number of waiters of the key with the most. Linear in the number of keys. */
  get most(): number {
    let most = 0;
    for (const { size } of this.#queues.values()) most = Math.max(most, size);
    return most;
  }

  /** Number of waiters of a key. */
  sizeOf(key: W["key"]): number {
    return this.#queues.get(key)?.size ?? 0;
  }

  /** Number of keys with waiters. */
  get keys(): number {
    return this.#queues.size;
  }
}

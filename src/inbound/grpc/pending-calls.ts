/** Limit of pending calls in the process: each holds up to 30 KiB. */
const MAX_PENDING = 4096;

/**
 * Limits the calls that hold memory without a key: those whose request has not arrived. A connection can have a thousand of
 * them, at a hundred bytes each. A usual request arrives with its headers, so that a call is pending for milliseconds. Beyond
 * the limit the oldest call ends of a connection that has no fewer than its share.
 */
export class PendingCalls {
  /** Functions that end a call, by connection, oldest first. */
  readonly #ofConnections = new Map<object, Set<() => void>>();
  #size = 0;

  /**
   * Adds a call. `end` ends it when it is over the limit. Returns a function for a call that is not pending any more, which may
   * be called several times.
   */
  add(connection: object, end: () => void): () => void {
    if (this.#size >= MAX_PENDING) this.#makeRoom(connection);
    const own = this.#ofConnections.get(connection) ?? new Set();
    this.#ofConnections.set(connection, own.add(end));
    this.#size += 1;
    return () => this.#remove(connection, end);
  }

  /** Looks at the new call's connection first: most often it is the crowded one. */
  #makeRoom(first: object): void {
    const share = MAX_PENDING / this.#ofConnections.size;
    const isCrowded = (connection: object): boolean => (this.#ofConnections.get(connection)?.size ?? 0) >= share;
    const crowded = isCrowded(first) ? first : this.#ofConnections.keys().find(isCrowded)!;
    const [oldest] = this.#ofConnections.get(crowded)!;
    this.#remove(crowded, oldest!);
    oldest!();
  }

  #remove(connection: object, end: () => void): void {
    const calls = this.#ofConnections.get(connection);
    if (calls?.delete(end) !== true) return;
    this.#size -= 1;
    if (calls.size === 0) this.#ofConnections.delete(connection);
  }
}

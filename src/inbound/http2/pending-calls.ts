/** Limit of pending calls in the process: each holds 12 to 30 KiB. */
const MAX_PENDING = 4096;
/** Pending calls that a connection may have in an event loop turn that has too many. */
const FEW = 8;

/**
 * Limits the calls that hold memory and wait for their client: those whose request has not arrived, that have no valid key, or
 * whose answer is complete and not read. Others are limited by admission. With a client that sends and reads at once a call is
 * pending for milliseconds. Beyond the limit the oldest connection ends of those that have at least their share; those that serve
 * a caller with a valid key, or a front's many, come last.
 *
 * Node frees the memory of these calls at the end of the event loop turn, in which every connection may send a thousand of them.
 * So after MAX_PENDING calls have ended in a turn, connections with new calls end, too, unless they have only FEW.
 */
export class PendingCalls<Connection extends { end(): void; readonly isServing: boolean }> {
  /** Pending calls by connection; the connection that has waited longest comes first. */
  readonly #ofConnections = new Map<Connection, Set<object>>();
  #size = 0;
  /** Calls of connections that were ended in this event loop turn. */
  #ended = 0;

  /** Adds a call; without effect when it is pending. */
  add(connection: Connection, call: object): void {
    const calls = this.#ofConnections.get(connection) ?? new Set();
    if (calls.has(call)) return;
    this.#ofConnections.set(connection, calls.add(call));
    this.#size += 1;
    if (this.#size > MAX_PENDING) this.#endOldest();
    if (this.#ended > MAX_PENDING && calls.size > FEW && !connection.isServing) this.#end(connection, calls);
  }

  /** Removes a call; without effect when it is not pending. */
  remove(connection: Connection, call: object): void {
    const calls = this.#ofConnections.get(connection);
    if (calls?.delete(call) !== true) return;
    this.#size -= 1;
    if (calls.size === 0) this.#ofConnections.delete(connection);
  }

  /** Ends a connection, whose pending calls count as ended in this event loop turn. */
  end(connection: Connection): void {
    const calls = this.#ofConnections.get(connection);
    if (calls === undefined) connection.end();
    else this.#end(connection, calls);
  }

  #endOldest(): void {
    const share = Math.floor(this.#size / this.#ofConnections.size);
    for (const isServing of [false, true])
      for (const [connection, calls] of this.#ofConnections)
        if (calls.size >= share && connection.isServing === isServing) return this.#end(connection, calls);
  }

  #end(connection: Connection, calls: ReadonlySet<object>): void {
    if (!this.#ofConnections.delete(connection)) return;
    if (this.#ended === 0) setImmediate(() => (this.#ended = 0));
    this.#size -= calls.size;
    this.#ended += calls.size;
    connection.end();
  }
}

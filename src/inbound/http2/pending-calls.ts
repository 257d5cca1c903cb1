/** Limit of pending calls in the process: each holds 12 to 30 KiB. */
const MAX_PENDING = 4096;
/** Limit of their unread answers. The largest of them are lists of models. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Pending calls that a connection may have in an event loop turn that has too many. */
const FEW = 8;

/** Pending calls of a connection. */
interface Held {
  /** With the bytes of their unread answers. */
  readonly calls: Map<object, number>;
  /** Bytes of all of them. */
  bytes: number;
}

/**
 * Limits the calls that hold memory and wait for their client: those whose request has not arrived, that have no valid key,
 * or whose answer is complete and not read. Others are limited by admission. With a client that sends and reads at once a
 * call is pending for milliseconds. Beyond a limit of calls or of bytes, it ends the oldest connection that has at least an
 * equal share of them. Connections with a call in flight that has a valid key, such as those of fronts, are ended last.
 *
 * Node frees the memory of these calls at the end of the event loop turn, in which every connection may send a thousand of them.
 * So after MAX_PENDING calls have ended in a turn, connections with new calls end, too, unless they have only FEW.
 */
export class PendingCalls<Connection extends { end(): void; readonly isServing: boolean }> {
  /** The connection that has waited longest comes first. */
  readonly #ofConnections = new Map<Connection, Held>();
  #size = 0;
  #bytes = 0;
  /** Calls of connections that were ended in this event loop turn. */
  #ended = 0;

  /** Adds a call. Of one that is pending only the bytes of its unread answer change. */
  add(connection: Connection, call: object, bytes = 0): void {
    const held: Held = this.#ofConnections.get(connection) ?? { calls: new Map(), bytes: 0 };
    const before = held.calls.get(call);
    if (before === bytes) return;
    this.#ofConnections.set(connection, held);
    held.calls.set(call, bytes);
    held.bytes += bytes - (before ?? 0);
    this.#bytes += bytes - (before ?? 0);
    if (before === undefined) this.#size += 1;
    if (this.#bytes > MAX_UNREAD_BYTES) this.#endOldest(this.#bytes, (of) => of.bytes);
    if (before !== undefined) return;
    if (this.#size > MAX_PENDING) this.#endOldest(this.#size, ({ calls }) => calls.size);
    if (this.#ended > MAX_PENDING && held.calls.size > FEW && !connection.isServing) this.#end(connection, held);
  }

  /** Removes a call; without effect when it is not pending. */
  remove(connection: Connection, call: object): void {
    const held = this.#ofConnections.get(connection);
    const bytes = held?.calls.get(call);
    if (held === undefined || bytes === undefined) return;
    held.calls.delete(call);
    held.bytes -= bytes;
    this.#bytes -= bytes;
    this.#size -= 1;
    if (held.calls.size === 0) this.#ofConnections.delete(connection);
  }

  /** Ends a connection, whose pending calls count as ended in this event loop turn. */
  end(connection: Connection): void {
    const held = this.#ofConnections.get(connection);
    if (held === undefined) connection.end();
    else this.#end(connection, held);
  }

  #endOldest(all: number, amountOf: (held: Held) => number): void {
    const share = Math.floor(all / this.#ofConnections.size);
    for (const isServing of [false, true])
      for (const [connection, held] of this.#ofConnections)
        if (amountOf(held) >= share && connection.isServing === isServing) return this.#end(connection, held);
  }

  #end(connection: Connection, { calls, bytes }: Held): void {
    if (!this.#ofConnections.delete(connection)) return;
    if (this.#ended === 0) setImmediate(() => (this.#ended = 0));
    this.#size -= calls.size;
    this.#bytes -= bytes;
    this.#ended += calls.size;
    connection.end();
  }
}

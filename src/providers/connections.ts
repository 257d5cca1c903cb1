import { type AnswerListener, Connection, type WireRequest } from "./connection.ts";
import { Dialer, type Origin } from "./dialer.ts";

/** How long a connection without a request is kept. */
const KEEP_ALIVE_MS = 30_000;

/** A connection is given up so long before its server would close it, so that no request meets the closing on its way. */
const EARLIER_MS = 1000;

/** One whose answer has ended, and how long it may be kept. */
interface Ended {
  readonly connection: Connection;
  readonly keepMs: number;
}

/** The connections to one origin, as many as there are requests at once. Of the idle ones the last used is taken. */
export class Connections {
  readonly #dialer: Dialer;
  readonly #connectMs: number;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];
  /** Since this turn of the event loop began. */
  #ended: Ended[] = [];
  readonly #allClosed = Promise.withResolvers<void>();
  #closing = false;

  /** `connectMs` is the time for DNS, TCP and TLS together. */
  constructor(origin: Origin, connectMs: number) {
    this.#dialer = new Dialer(origin);
    this.#connectMs = connectMs;
  }

  /** Sends a request over a connection that has none, a new one if need be. */
  send(request: WireRequest, listener: AnswerListener): void {
    const connection = this.#idle.pop() ?? this.#open();
    listener.connection = connection;
    connection.send(request, listener);
  }

  /** Closes idle connections now and the others after their request. Resolves when all are closed. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
    if (this.#all.size > 0) await this.#allClosed.promise;
  }

  /** A connection is handed out again when all of this turn's reads are done: more may have come after its answer. */
  onIdle(connection: Connection, keepAliveMs: number): void {
    if (this.#ended.length === 0) setImmediate(this.#release);
    this.#ended.push({ connection, keepMs: Math.min(keepAliveMs - EARLIER_MS, KEEP_ALIVE_MS) });
  }

  onUnsent(request: WireRequest, listener: AnswerListener): void {
    this.send(request, listener);
  }

  onClosed(connection: Connection): void {
    this.#all.delete(connection);
    // The one that was used longest ago is the first to be closed.
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    if (this.#closing && this.#all.size === 0) this.#allClosed.resolve();
  }

  #open(): Connection {
    const connection = new Connection(this.#dialer, this.#connectMs, this);
    this.#all.add(connection);
    return connection;
  }

  readonly #release = (): void => {
    const ended = this.#ended;
    this.#ended = [];
    for (const { connection, keepMs } of ended) {
      // Closed meanwhile.
      if (!this.#all.has(connection)) continue;
      if (this.#closing || keepMs <= 0) connection.destroy();
      else {
        connection.keep(keepMs);
        this.#idle.push(connection);
      }
    }
  };
}

import { Connection, noDescriptor, type RequestSender, type ResponseListener, type WireRequest } from "./connection.ts";
import { ConnectionQueue } from "./connection-queue.ts";
import { Dialer, type Origin } from "./dialer.ts";
import { NO_SOCKET_LIMIT, type SocketLimit } from "./socket-limit.ts";

/** Limits of the connections to one origin. */
export interface ConnectionLimits {
  /** Maximum open connections, all pools together. */
  readonly max: number;
  /** Maximum age for taking a new request, so that DNS changes of the provider take effect. */
  readonly maxAgeMs: number;
  readonly maxRequests: number;
  /** Limit of the connections to all origins together. Default: none. */
  readonly sockets?: SocketLimit;
}

/** Time in ms after which an idle connection is closed. */
export const KEEP_ALIVE_MS = 30_000;

/** An idle connection is closed this many ms before the server would, so that no request races the server's close. */
const EARLIER_MS = 1000;

/**
 * Bounds of the quarantine of a connection after a response. Nothing in HTTP/1.1 ties a response to its request, so a
 * stray response can be detected only while no request is on the connection. Most arrive at once. If a stray response was
 * taken for the real one, the real one follows after about the usual time to first byte: hence twice that average.
 */
const MIN_QUARANTINE_MS = 50;
const MAX_QUARANTINE_MS = 5000;
/** Interval of the check for expired connections and silent servers. */
export const SWEEP_MS = 100;

/** Free connections, ordered by the end of their last response. */
type Pool = Readonly<Record<"quarantined" | "idle", Connection[]>>;

/** The connections to one origin. Takes the most recently used connection that has left quarantine. */
export class Connections implements RequestSender<string> {
  readonly connectMs: number;
  readonly #dialer: Dialer;
  readonly #limits: ConnectionLimits;
  readonly #sockets: SocketLimit;
  readonly #leaveSockets: () => void;
  readonly #all = new Set<Connection>();
  readonly #pools = new Map<string, Pool>();
  readonly #waiting: ConnectionQueue<string>;
  #sweeping: NodeJS.Timeout | undefined;
  #sweptAtMs = 0;
  #averageBeginMs = 0;
  readonly #allClosed = Promise.withResolvers<void>();
  #closing = false;

  constructor(origin: Origin, connectMs: number, limits: ConnectionLimits) {
    this.connectMs = connectMs;
    this.#sockets = limits.sockets ?? NO_SOCKET_LIMIT;
    this.#leaveSockets = this.#sockets.join(this);
    this.#dialer = new Dialer(origin);
    this.#limits = limits;
    this.#waiting = new ConnectionQueue(connectMs, (request, listener) => this.#dispatch(request, listener));
  }

  /**
   * Sends a request over a connection of its pool, opening one if none is free. At `limits.max` the request queues,
   * fairly by key; after `connectMs` the listener gets an error.
   */
  send(request: WireRequest, listener: ResponseListener): void {
    if (this.#waiting.size === 0 && this.#dispatch(request, listener)) return;
    this.#waiting.add(request, listener);
    setTimeout(this.#serve, MIN_QUARANTINE_MS + 1);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#leaveSockets();
    for (const connection of this.#all) if (connection.isFree) connection.destroy();
    if (this.#all.size > 0 || this.#waiting.size > 0) await this.#allClosed.promise;
  }

  onIdle(connection: Connection, keepAliveMs: number): void {
    const { openedAtMs, beginMs, requests, pool: name } = connection;
    this.#averageBeginMs = this.#averageBeginMs === 0 ? beginMs : (this.#averageBeginMs * 31 + beginMs) / 32;
    const now = performance.now();
    const keepMs = Math.min(keepAliveMs - EARLIER_MS, KEEP_ALIVE_MS, openedAtMs + this.#limits.maxAgeMs - now);
    if (this.#closing || keepMs <= MIN_QUARANTINE_MS || requests >= this.#limits.maxRequests)
      return connection.destroy();
    connection.freeAtMs = now;
    connection.closeAtMs = now + keepMs;
    this.#poolOf(name).quarantined.push(connection);
    if (this.#waiting.size > 0) setTimeout(this.#serve, MIN_QUARANTINE_MS + 1);
  }

  closeFree(): boolean {
    for (const { idle, quarantined } of this.#pools.values()) {
      const free = idle[0] ?? quarantined[0];
      if (free === undefined) continue;
      free.destroy();
      return true;
    }
    return false;
  }

  onClosed(connection: Connection): void {
    this.#all.delete(connection);
    this.#sockets.give();
    for (const list of Object.values(this.#poolOf(connection.pool))) {
      const index = list.indexOf(connection);
      if (index >= 0) list.splice(index, 1);
    }
    if (this.#closing || this.#waiting.size > 0) setImmediate(this.#serve);
  }

  /**
   * Sends the request if a connection is free or may be opened. Without a file descriptor the listener gets an error. Returns false when
   * the request has to wait.
   */
  #dispatch(request: WireRequest, listener: ResponseListener): boolean {
    const connection = this.#takeIdle(request.pool) ?? this.#open(request.pool);
    if (connection === undefined) return false;
    if (connection === "no descriptor") {
      listener.onError(noDescriptor());
      return true;
    }
    listener.connection = connection;
    connection.send(request, listener);
    return true;
  }

  #poolOf(name: string): Pool {
    let pool = this.#pools.get(name);
    if (pool === undefined) this.#pools.set(name, (pool = { quarantined: [], idle: [] }));
    return pool;
  }

  #takeIdle(name: string): Connection | undefined {
    const { quarantined, idle } = this.#poolOf(name);
    const longestMs = this.#all.size < this.#limits.max ? MAX_QUARANTINE_MS : MIN_QUARANTINE_MS;
    const endedBeforeMs =
      performance.now() - Math.min(Math.max(2 * this.#averageBeginMs, MIN_QUARANTINE_MS), longestMs);
    while (quarantined.length > 0 && quarantined[0]!.freeAtMs <= endedBeforeMs) idle.push(quarantined.shift()!);
    return idle.pop();
  }

  /** Opens a connection; at `limits.max` it replaces a free one of another pool. */
  #open(pool: string): Connection | "no descriptor" | undefined {
    if (this.#all.size >= this.#limits.max) {
      const free = this.#all.values().find((each) => each.isFree && each.pool !== pool);
      if (free === undefined) return undefined;
      free.destroy();
    }
    if (!this.#sockets.take()) return "no descriptor";
    const connection = new Connection(this.#dialer, pool, this);
    this.#all.add(connection);
    if (this.#sweeping === undefined) this.#sweeping = this.#sweepLater();
    return connection;
  }

  readonly #serve = (): void => {
    this.#waiting.serve();
    if (this.#closing && this.#all.size === 0 && this.#waiting.size === 0) this.#allClosed.resolve();
  };

  readonly #sweep = (): void => {
    const now = performance.now();
    const elapsedMs = now - this.#sweptAtMs;
    this.#sweptAtMs = now;
    for (const connection of this.#all) {
      connection.breakIfFlooded(elapsedMs);
      if (!connection.isFree) connection.breakIfSilent(now);
      else if (connection.closeAtMs <= now) connection.destroy();
    }
    for (const [name, { quarantined, idle }] of this.#pools)
      if (quarantined.length + idle.length === 0) this.#pools.delete(name);
    this.#sweeping = this.#all.size > 0 ? this.#sweepLater() : undefined;
  };

  /** Plans the next sweep. The immediate runs after the event loop has polled sockets, so bytes that arrived before the timer count. */
  #sweepLater(): NodeJS.Timeout {
    return setTimeout(() => void setImmediate(this.#sweep), SWEEP_MS).unref();
  }
}

import { FairQueue, type Waiter } from "../../scheduling/fair-queue.ts";
import { type ResponseListener, type Carrier, Connection, connectionError, type WireRequest } from "./connection.ts";
import { Dialer, type Origin } from "./dialer.ts";

/** How many connections to one origin there may be, and for how long. */
export interface ConnectionLimits {
  /** Open at once, in all pools together. */
  readonly max: number;
  /** Older ones carry no further request, so that a provider that moves by DNS is followed. */
  readonly maxAgeMs: number;
  readonly maxRequests: number;
}

/** How long a connection without a request is kept. */
const KEEP_ALIVE_MS = 30_000;

/** A connection is given up so long before its server would close it, so that no request meets the closing on its way. */
const EARLIER_MS = 1000;

/**
 * How long a connection rests after an answer: nothing in HTTP/1.1 ties an answer to its request, so a stray one can be told
 * only while no request is on the connection. Most come at once. One that was taken for an answer is followed by the real
 * one, about as late as answers begin: hence twice the average of that, within these bounds.
 */
const MIN_REST_MS = 50;
const MAX_REST_MS = 5000;
/** How often connections are closed whose time is over, or whose server is silent. */
const SWEEP_MS = 100;

/** Connections without a request, by the end of their last answer. */
type Pool = Readonly<Record<"resting" | "idle", Connection[]>>;

/** A request for which there is no connection. */
type Waiting = Waiter & Carrier & { readonly request: WireRequest; readonly listener: ResponseListener };

/** The connections to one origin. Of those that have rested the last used is taken. */
export class Connections {
  readonly connectMs: number;
  readonly #dialer: Dialer;
  readonly #limits: ConnectionLimits;
  readonly #all = new Set<Connection>();
  readonly #pools = new Map<string, Pool>();
  readonly #waiting = new FairQueue<Waiting>();
  #sweeping: NodeJS.Timeout | undefined;
  #averageBeginMs = 0;
  readonly #allClosed = Promise.withResolvers<void>();
  #closing = false;

  constructor(origin: Origin, connectMs: number, limits: ConnectionLimits) {
    this.connectMs = connectMs;
    this.#dialer = new Dialer(origin);
    this.#limits = limits;
  }

  /**
   * Sends a request over a connection of its pool, a new one if need be. Where there may be no more, it waits for one, the
   * keys in turn; after `connectMs` the listener hears of an error.
   */
  send(request: WireRequest, listener: ResponseListener): void {
    if (this.#waiting.size > 0 || !this.#dispatch(request, listener)) this.#wait(request, listener);
  }

  /** Closes idle connections now and the others after their request. Resolves when all are closed. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const connection of this.#all) if (connection.isFree) connection.destroy();
    if (this.#all.size > 0 || this.#waiting.size > 0) await this.#allClosed.promise;
  }

  onIdle(connection: Connection, keepAliveMs: number): void {
    const { openedAtMs, beginMs, requests, pool: name } = connection;
    this.#averageBeginMs = this.#averageBeginMs === 0 ? beginMs : (this.#averageBeginMs * 31 + beginMs) / 32;
    const now = performance.now();
    const keepMs = Math.min(keepAliveMs - EARLIER_MS, KEEP_ALIVE_MS, openedAtMs + this.#limits.maxAgeMs - now);
    if (this.#closing || keepMs <= MIN_REST_MS || requests >= this.#limits.maxRequests) return connection.destroy();
    connection.freeAtMs = now;
    connection.closeAtMs = now + keepMs;
    this.#poolOf(name).resting.push(connection);
    if (this.#waiting.size > 0) setTimeout(this.#serve, MIN_REST_MS + 1);
  }

  onClosed(connection: Connection): void {
    this.#all.delete(connection);
    for (const list of Object.values(this.#poolOf(connection.pool))) {
      const place = list.indexOf(connection);
      if (place >= 0) list.splice(place, 1);
    }
    if (this.#closing || this.#waiting.size > 0) setImmediate(this.#serve);
  }

  /** Sends the request if there is a connection for it, or may be. Answers whether it did. */
  #dispatch(request: WireRequest, listener: ResponseListener): boolean {
    const connection = this.#takeRested(request.pool) ?? this.#open(request.pool);
    if (connection === undefined) return false;
    listener.connection = connection;
    connection.send(request, listener);
    return true;
  }

  #poolOf(name: string): Pool {
    let pool = this.#pools.get(name);
    if (pool === undefined) this.#pools.set(name, (pool = { resting: [], idle: [] }));
    return pool;
  }

  #takeRested(name: string): Connection | undefined {
    const { resting, idle } = this.#poolOf(name);
    const longestMs = this.#all.size < this.#limits.max ? MAX_REST_MS : MIN_REST_MS;
    const endedBeforeMs = performance.now() - Math.min(Math.max(2 * this.#averageBeginMs, MIN_REST_MS), longestMs);
    while (resting.length > 0 && resting[0]!.freeAtMs <= endedBeforeMs) idle.push(resting.shift()!);
    return idle.pop();
  }

  /** A new one; where there may be no more, in place of a free one of another pool. */
  #open(pool: string): Connection | undefined {
    if (this.#all.size >= this.#limits.max) {
      const free = this.#all.values().find((each) => each.isFree && each.pool !== pool);
      if (free === undefined) return undefined;
      free.destroy();
    }
    const connection = new Connection(this.#dialer, pool, this);
    this.#all.add(connection);
    if (this.#sweeping === undefined) this.#sweeping = this.#sweepLater();
    return connection;
  }

  #wait(request: WireRequest, listener: ResponseListener): void {
    const timer = setTimeout(() => {
      leave();
      listener.onError(connectionError("NO_CONNECTION", `no connection was free within ${this.connectMs} ms`));
    }, this.connectMs);
    const leave = (): void => {
      clearTimeout(timer);
      this.#waiting.remove(waiting);
    };
    const waiting = { key: request.key, request, listener, pause() {}, resume() {}, destroy: leave };
    listener.connection = waiting;
    this.#waiting.add(waiting);
    setTimeout(this.#serve, MIN_REST_MS + 1);
  }

  /** Sends waiting requests, the oldest of each key in turn, for as long as there are connections for them. */
  readonly #serve = (): void => {
    for (let [first] = this.#waiting.oldest(); first !== undefined; [first] = this.#waiting.oldest()) {
      if (!this.#dispatch(first.request, first.listener)) return;
      this.#waiting.next()?.destroy();
    }
    if (this.#closing && this.#all.size === 0) this.#allClosed.resolve();
  };

  readonly #sweep = (): void => {
    const now = performance.now();
    for (const connection of this.#all) {
      if (!connection.isFree) connection.breakIfSilent(now);
      else if (connection.closeAtMs <= now) connection.destroy();
    }
    for (const [name, { resting, idle }] of this.#pools)
      if (resting.length + idle.length === 0) this.#pools.delete(name);
    this.#sweeping = this.#all.size > 0 ? this.#sweepLater() : undefined;
  };

  /** What has arrived when a timer is due is read after it, and before immediates. */
  #sweepLater(): NodeJS.Timeout {
    return setTimeout(() => void setImmediate(this.#sweep), SWEEP_MS).unref();
  }
}

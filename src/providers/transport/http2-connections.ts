import type { OutgoingHttpHeaders } from "node:http2";
import { noDescriptor, type RequestSender, type ResponseListener, type WireRequest } from "./connection.ts";
import { ConnectionQueue } from "./connection-queue.ts";
import { type ConnectionLimits, KEEP_ALIVE_MS, SWEEP_MS } from "./connections.ts";
import { Dialer, type Origin } from "./dialer.ts";
import { Http2Connection, MAX_STREAMS } from "./http2-connection.ts";
import { NO_SOCKET_LIMIT, type SocketLimit } from "./socket-limit.ts";

/** The HTTP/2 connections to one origin. Uses the oldest connection with room, so that few stay open. */
export class Http2Connections implements RequestSender<OutgoingHttpHeaders> {
  readonly connectMs: number;
  readonly #dialer: Dialer;
  readonly #limits: ConnectionLimits;
  readonly #sockets: SocketLimit;
  readonly #leaveSockets: () => void;
  readonly #all = new Set<Http2Connection>();
  usualStreams = MAX_STREAMS;
  /** A queue per pool, so that a pool with full connections does not delay others. */
  readonly #waiting = new Map<string, ConnectionQueue<OutgoingHttpHeaders>>();
  readonly #allClosed = Promise.withResolvers<void>();
  #sweeping: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(origin: Origin, connectMs: number, limits: ConnectionLimits) {
    this.connectMs = connectMs;
    this.#sockets = limits.sockets ?? NO_SOCKET_LIMIT;
    this.#leaveSockets = this.#sockets.join(this);
    this.#dialer = new Dialer(origin, "h2");
    this.#limits = limits;
  }

  /**
   * Sends a request over a connection of its pool, opening one if none has room. At `limits.max` the request queues, fairly
   * by key; after `connectMs` the listener gets an error.
   */
  send(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): void {
    const hasWaiting = (this.#waiting.get(request.pool)?.size ?? 0) > 0;
    if (hasWaiting || !this.#dispatch(request, listener)) this.#queueOf(request.pool).add(request, listener);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#leaveSockets();
    for (const connection of this.#all) if (connection.isFree) connection.destroy();
    this.#serve();
    if (this.#all.size > 0 || this.#waiting.size > 0) await this.#allClosed.promise;
  }

  onRoom(connection: Http2Connection): void {
    this.#serve();
    // A connection that takes no further request closes after its last one.
    if (connection.isFree && (this.#closing || !connection.hasRoom(this.#limits))) connection.destroy();
  }

  closeFree(): boolean {
    const free = this.#all.values().find(({ isFree }) => isFree);
    free?.destroy();
    return free !== undefined;
  }

  onClosed(connection: Http2Connection): void {
    this.#all.delete(connection);
    this.#sockets.give();
    // Later, because the caller of the ended request may send its next one now.
    setImmediate(() => {
      this.#serve();
      if (this.#closing && this.#all.size === 0 && this.#waiting.size === 0) this.#allClosed.resolve();
    });
  }

  #queueOf(pool: string): ConnectionQueue<OutgoingHttpHeaders> {
    let queue = this.#waiting.get(pool);
    if (queue === undefined) {
      queue = new ConnectionQueue(this.connectMs, (request, listener) => this.#dispatch(request, listener));
      this.#waiting.set(pool, queue);
    }
    return queue;
  }

  #serve(): void {
    for (const [pool, queue] of this.#waiting) {
      queue.serve();
      if (queue.size === 0) this.#waiting.delete(pool);
    }
  }

  #dispatch(request: WireRequest<OutgoingHttpHeaders>, listener: ResponseListener): boolean {
    const connection = this.#find(request.pool) ?? this.#open(request.pool);
    if (connection === "no descriptor") listener.onError(noDescriptor());
    else connection?.send(request, listener);
    return connection !== undefined;
  }

  #find(pool: string): Http2Connection | undefined {
    return this.#all.values().find((each) => each.pool === pool && each.hasRoom(this.#limits));
  }

  /** Opens a connection; at `limits.max` it replaces a free one. */
  #open(pool: string): Http2Connection | "no descriptor" | undefined {
    if (this.#all.size >= this.#limits.max) {
      if (!this.closeFree()) return undefined;
    }
    if (!this.#sockets.take()) return "no descriptor";
    const connection = new Http2Connection(this.#dialer, pool, this);
    this.#all.add(connection);
    if (this.#sweeping === undefined) this.#sweeping = this.#sweepLater();
    return connection;
  }

  readonly #sweep = (): void => {
    const now = performance.now();
    for (const connection of this.#all) {
      connection.sweep(now);
      if (connection.isFree && now - connection.freeAtMs > KEEP_ALIVE_MS) connection.destroy();
    }
    // Removes queues whose last request gave up.
    for (const [pool, { size }] of this.#waiting) if (size === 0) this.#waiting.delete(pool);
    this.#sweeping = this.#all.size > 0 ? this.#sweepLater() : undefined;
  };

  /** Plans the next sweep. The immediate runs after the event loop has polled sockets, so bytes that arrived before the timer count. */
  #sweepLater(): NodeJS.Timeout {
    return setTimeout(() => void setImmediate(this.#sweep), SWEEP_MS).unref();
  }
}

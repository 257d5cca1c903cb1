import { FairQueue, type Waiter } from "../../scheduling/fair-queue.ts";
import { type Carrier, connectionError, type ResponseListener, type WireRequest } from "./connection.ts";

/** A request queued for a connection. */
type Waiting<Head> = Waiter & Carrier & { readonly request: WireRequest<Head>; readonly listener: ResponseListener };

/** Requests that wait for a connection, the oldest of each key in rotation. */
export class ConnectionQueue<Head> {
  readonly #waitMs: number;
  readonly #dispatch: (request: WireRequest<Head>, listener: ResponseListener) => boolean;
  readonly #waiting = new FairQueue<Waiting<Head>>();

  /** `dispatch` sends a request if a connection is free, and returns whether it was sent. */
  constructor(waitMs: number, dispatch: (request: WireRequest<Head>, listener: ResponseListener) => boolean) {
    this.#waitMs = waitMs;
    this.#dispatch = dispatch;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Queues a request. After `waitMs` its listener gets an error. */
  add(request: WireRequest<Head>, listener: ResponseListener): void {
    const timer = setTimeout(() => {
      leave();
      listener.onError(connectionError("NO_CONNECTION", `no connection was free within ${this.#waitMs} ms`));
    }, this.#waitMs);
    const leave = (): void => {
      clearTimeout(timer);
      this.#waiting.remove(waiting);
    };
    const waiting = { key: request.key, request, listener, pause() {}, resume() {}, destroy: leave };
    listener.connection = waiting;
    this.#waiting.add(waiting);
  }

  /** Sends queued requests until no connection is left. */
  serve(): void {
    for (let [first] = this.#waiting.oldest(); first !== undefined; [first] = this.#waiting.oldest()) {
      if (!this.#dispatch(first.request, first.listener)) return;
      this.#waiting.next()?.destroy();
    }
  }
}

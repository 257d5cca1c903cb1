import type { Socket } from "node:net";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";

/** Limit of pipelined requests of the process that begin in one event loop turn. */
const MAX_PER_TURN = 32;

interface Waiting extends Waiter<Socket> {
  readonly begin: () => void;
}

/**
 * Begins pipelined requests at the end of event loop turns: a limited number in each, connections round robin, those of a
 * connection in order. Node accepts one new connection per turn: when each turn answered the eight requests of 160 connections,
 * new connections waited for seconds.
 */
export class PipelinedRequests {
  readonly #waiting = new FairQueue<Waiting>();
  #isArmed = false;

  /** Calls `begin` at the end of this turn or of a later one. Returns what removes it; the caller calls it when the response closes. */
  add(socket: Socket, begin: () => void): () => void {
    const waiting = { key: socket, begin };
    this.#waiting.add(waiting);
    this.#arm();
    return () => this.#waiting.remove(waiting);
  }

  #arm(): void {
    if (this.#isArmed || this.#waiting.size === 0) return;
    this.#isArmed = true;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#isArmed = false;
    for (let count = 0; count < MAX_PER_TURN; count++) this.#waiting.next()?.begin();
    this.#arm();
  };
}

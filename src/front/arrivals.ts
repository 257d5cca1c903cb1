import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../core/clock.ts";
import { arrivesTooSlowly } from "../edge/pace.ts";

interface Arrival {
  readonly request: IncomingMessage;
  readonly sinceMs: number;
  /** What the connection had brought before. */
  readonly fromBytes: number;
}

/**
 * Requests whose bodies may still be on their way. Node bounds how long a whole request may take; one that brings a byte
 * now and then would have a connection for all of that time.
 */
export class Arrivals {
  readonly #clock: Clock;
  /** The latest request of each connection; complete ones are forgotten at the next look. */
  readonly #arriving = new Map<Socket, Arrival>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(request: IncomingMessage): void {
    const { socket } = request;
    this.#arriving.set(socket, { request, sinceMs: this.#clock.monotonic(), fromBytes: socket.bytesRead });
  }

  /** The connections of requests that come too slowly. */
  takeSlow(): Socket[] {
    const slow: Socket[] = [];
    const nowMs = this.#clock.monotonic();
    for (const [socket, { request, sinceMs, fromBytes }] of this.#arriving) {
      const isOver = request.complete || socket.destroyed;
      const isSlow = !isOver && arrivesTooSlowly(socket.bytesRead - fromBytes, nowMs - sinceMs);
      if (isOver || isSlow) this.#arriving.delete(socket);
      if (isSlow) slow.push(socket);
    }
    return slow;
  }
}

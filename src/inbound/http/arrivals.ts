import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { declaredBytes } from "./body.ts";
import { arrivesTooSlowly } from "../pace.ts";

interface Arrival {
  readonly request: IncomingMessage;
  sinceMs: number;
  /** What the connection had brought before. */
  fromBytes: number;
}

/**
 * Requests whose bodies may still be on their way. Node bounds how long a whole request may take; one that brings a byte
 * now and then would have a connection, and the memory for its body, for all of that time.
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
    for (const [socket, arrival] of this.#arriving) {
      const { request, sinceMs, fromBytes } = arrival;
      const isOver = request.complete || socket.destroyed;
      // A body that is not read yet waits for us: its sender's time begins when it is.
      if (!isOver && request.readableFlowing !== true) {
        arrival.sinceMs = nowMs;
        arrival.fromBytes = socket.bytesRead;
        continue;
      }
      const isSlow = !isOver && arrivesTooSlowly(socket.bytesRead - fromBytes, nowMs - sinceMs, declaredBytes(request));
      if (isOver || isSlow) this.#arriving.delete(socket);
      if (isSlow) slow.push(socket);
    }
    return slow;
  }
}

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { arrivesTooSlowly } from "../arrival-limits.ts";
import { declaredBytes } from "./body.ts";

interface Arrival {
  readonly request: IncomingMessage;
  sinceMs: number;
  /** Bytes read from the connection before the request. */
  fromBytes: number;
}

/**
 * Requests of HTTP/1.1 whose bodies may still be arriving. Node only limits the total time of a request, in which a slow sender would
 * hold a connection and the memory for its body.
 */
export class Arrivals {
  readonly #clock: Clock;
  /** Latest request of each connection; complete ones are removed at the next check. */
  readonly #arriving = new Map<Socket, Arrival>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(request: IncomingMessage): void {
    const { socket } = request;
    this.#arriving.set(socket, { request, sinceMs: this.#clock.monotonic(), fromBytes: socket.bytesRead });
  }

  /** Whether nothing was read from the connection since its latest request began. */
  isOfLatestRead(socket: Socket): boolean {
    return this.#arriving.get(socket)?.fromBytes === socket.bytesRead;
  }

  /** Takes the connections of requests that arrive too slowly. */
  takeSlow(): Socket[] {
    const slow: Socket[] = [];
    const nowMs = this.#clock.monotonic();
    for (const [socket, arrival] of this.#arriving) {
      const { request, sinceMs, fromBytes } = arrival;
      const isOver = request.complete || socket.destroyed;
      // The time of the sender starts when the body is read.
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

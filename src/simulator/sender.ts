import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import type { Fault } from "./faults.ts";

/** Pace of answers. A missing field means no delay. */
export interface PaceOptions {
  /** Tokens per second after the first token. */
  readonly tokensPerSecond?: number | undefined;
  /** Delay before the first token, in milliseconds. */
  readonly firstTokenMs?: number | undefined;
}

/** Approximate pace of a hosted model, for demonstrations. */
export const MODEL_PACE = { tokensPerSecond: 80, firstTokenMs: 250 } as const satisfies PaceOptions;

/** Paces one answer. */
export interface Pace {
  /** Waits until the `count`-th token (from 1) is due. Rejects and clears its timer when the client disconnects. */
  waitFor(count: number): Promise<void>;
}

/** Starts the clock of one answer. Due times are absolute, so late timers do not accumulate. */
export function startPace(options: PaceOptions, signal: AbortSignal): Pace {
  const startedMs = performance.now();
  const firstTokenMs = options.firstTokenMs ?? 0;
  const msPerToken = options.tokensPerSecond ? 1000 / options.tokensPerSecond : 0;
  return {
    async waitFor(count) {
      const remainingMs = startedMs + firstTokenMs + (count - 1) * msPerToken - performance.now();
      if (remainingMs >= 1) await pause(remainingMs, undefined, { signal });
      else signal.throwIfAborted();
    },
  };
}

/** Bytes of an answer that are written in one turn. */
const TURN_BYTES = 8 * 1024;

/**
 * Shares the time of all answers in this process: some milliseconds in each event loop turn, in rotation. The gateway runs on the same
 * event loop, and its callers choose how much there is to write.
 */
const turns = new ReadScheduler();

/** Writes one response with back-pressure, and ends it properly or with a fault. */
export class Sender {
  readonly signal: AbortSignal;
  private readonly response: ServerResponse;
  private readonly drip: Fault["drip"];
  /** Key of its turns. */
  private readonly key = randomUUID();
  /** Bytes that were written since its last turn. */
  private turnBytes = 0;

  constructor(response: ServerResponse, signal: AbortSignal, drip?: Fault["drip"]) {
    this.response = response;
    this.signal = signal;
    this.drip = drip;
  }

  /** Sends status line and headers immediately, even if the body follows later. */
  start(status: number, headers: OutgoingHttpHeaders): void {
    this.response.writeHead(status, headers);
    this.response.flushHeaders();
  }

  /** Writes and resolves when more can be written. Rejects when the client disconnects. */
  async write(body: string | Buffer): Promise<void> {
    if (!this.drip) {
      this.turnBytes += body.length;
      if (this.turnBytes > TURN_BYTES) await this.turn();
      return this.push(body);
    }
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    for (let at = 0; at < bytes.length; at += this.drip.bytes) {
      await this.push(bytes.subarray(at, at + this.drip.bytes));
      await pause(this.drip.everyMs, undefined, { signal: this.signal });
    }
  }

  /** Resolves in the next turn of this answer. */
  async turn(): Promise<void> {
    this.turnBytes = 0;
    await new Promise<void>((resolve) => {
      turns.take(this.key, () => {
        resolve();
        // What follows is the only work of its group, so that the time of each is measured.
        return Infinity;
      });
    });
    this.signal.throwIfAborted();
  }

  end(): void {
    this.response.end();
  }

  /** Closes the TCP connection with FIN before the body is complete. */
  async cut(): Promise<void> {
    await this.flush();
    this.response.socket?.end();
  }

  /** Resets the TCP connection after the written data was sent. */
  async reset(): Promise<void> {
    await this.flush();
    this.response.socket?.resetAndDestroy();
  }

  /** Waits until the client disconnects; always rejects. */
  async hang(): Promise<never> {
    if (!this.signal.aborted) await once(this.signal, "abort");
    throw this.signal.reason;
  }

  /** Waits until all written data was passed to the operating system. */
  private async flush(): Promise<void> {
    // Node buffers the chunks of one event loop turn before it writes them to the socket.
    await nextTurn(undefined, { signal: this.signal });
    const { socket } = this.response;
    if (socket) await new Promise<void>((resolve) => socket.write("", () => resolve()));
  }

  private async push(body: string | Buffer): Promise<void> {
    this.signal.throwIfAborted();
    if (body.length > 0 && !this.response.write(body)) await once(this.response, "drain", { signal: this.signal });
  }
}

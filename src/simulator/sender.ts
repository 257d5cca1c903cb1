import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./faults.ts";

/** How fast answers come. Leave a field out to have no wait of its kind. */
export interface PaceOptions {
  /** Tokens per second, from the first one on. */
  readonly tokensPerSecond?: number | undefined;
  /** Wait before the first token, in milliseconds. */
  readonly firstTokenMs?: number | undefined;
}

/** About what a hosted model does; good for a demonstration. */
export const MODEL_PACE = { tokensPerSecond: 80, firstTokenMs: 250 } as const satisfies PaceOptions;

/** Keeps one answer to its pace. */
export interface Pace {
  /** Waits until the `count`-th token (from 1) is due. Rejects and clears its timer when the client disconnects. */
  waitFor(count: number): Promise<void>;
}

/** Starts the clock of one answer. Tokens are due by the clock, so late timers are made up for. */
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

/** Writes one answer to its socket, no faster than the reader takes it, and ends it well or badly. */
export class Sender {
  readonly signal: AbortSignal;
  private readonly response: ServerResponse;
  private readonly drip: Fault["drip"];

  constructor(response: ServerResponse, signal: AbortSignal, drip?: Fault["drip"]) {
    this.response = response;
    this.signal = signal;
    this.drip = drip;
  }

  /** Sends the status line and the headers at once, also when no body follows for a while. */
  start(status: number, headers: OutgoingHttpHeaders): void {
    this.response.writeHead(status, headers);
    this.response.flushHeaders();
  }

  /** Resolves when more may be written. Rejects as soon as the client disconnects. */
  async write(body: string | Buffer): Promise<void> {
    if (!this.drip) return this.push(body);
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    for (let at = 0; at < bytes.length; at += this.drip.bytes) {
      await this.push(bytes.subarray(at, at + this.drip.bytes));
      await pause(this.drip.everyMs, undefined, { signal: this.signal });
    }
  }

  end(): void {
    this.response.end();
  }

  /** Ends the connection politely on the TCP level although the body is not complete. */
  async cut(): Promise<void> {
    await this.flush();
    this.response.socket?.end();
  }

  /** Resets the connection once what was written has left. */
  async reset(): Promise<void> {
    await this.flush();
    this.response.socket?.resetAndDestroy();
  }

  /** Waits until the client disconnects; always rejects. */
  async hang(): Promise<never> {
    if (!this.signal.aborted) await once(this.signal, "abort");
    throw this.signal.reason;
  }

  /** Waits until the operating system has everything that was written. */
  private async flush(): Promise<void> {
    // Node gathers the chunks of one turn of the event loop before any of them reaches the socket.
    await nextTurn(undefined, { signal: this.signal });
    const { socket } = this.response;
    if (socket) await new Promise<void>((resolve) => socket.write("", () => resolve()));
  }

  private async push(body: string | Buffer): Promise<void> {
    this.signal.throwIfAborted();
    if (body.length > 0 && !this.response.write(body)) await once(this.response, "drain", { signal: this.signal });
  }
}

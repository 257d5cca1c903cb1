import { setTimeout as pause } from "node:timers/promises";

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

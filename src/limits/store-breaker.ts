import type { Clock } from "../core/clock.ts";

/** Consecutive failures that open the breaker. */
const FAILURES = 5;
const PROBE_MS = 1000;

interface StoreBreakerOptions {
  readonly clock: Clock;
  /** A harmless query; rejects while the store is unavailable. */
  readonly probe: () => Promise<unknown>;
  readonly onChange: (open: boolean) => void;
}

/**
 * Circuit breaker of a store. Opens after FAILURES consecutive failures, and closes when a probe succeeds, which runs about once a
 * second. Requests are never probes, so no request waits for an unavailable store.
 */
export class StoreBreaker {
  readonly #options: StoreBreakerOptions;
  #inARow = 0;
  #open = false;
  #closed = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: StoreBreakerOptions) {
    this.#options = options;
  }

  /** Whether the breaker is open. */
  get open(): boolean {
    return this.#open;
  }

  /** Records a success. A late success of a call from before the breaker opened does not close it. */
  succeeded(): void {
    this.#inARow = 0;
  }

  failed(): void {
    this.#inARow += 1;
    if (this.#open || this.#closed || this.#inARow < FAILURES) return;
    this.#open = true;
    this.#options.onChange(true);
    this.#probeLater();
  }

  /** Stops the probes. */
  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
  }

  /** Plans a probe, with jitter so that replicas do not probe at the same time. */
  #probeLater(): void {
    if (this.#closed) return;
    const delayMs = PROBE_MS * (0.8 + Math.random() * 0.4);
    this.#stopTimer = this.#options.clock.after(delayMs, () => {
      this.#options.probe().then(
        () => this.#shut(),
        () => this.#probeLater(),
      );
    });
  }

  #shut(): void {
    if (this.#closed) return;
    this.#open = false;
    this.#inARow = 0;
    this.#options.onChange(false);
  }
}

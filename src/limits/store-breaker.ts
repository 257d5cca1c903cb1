import type { Clock } from "../core/clock.ts";

/** Failures in a row that open it. */
const FAILURES = 5;
const PROBE_MS = 1000;

export interface StoreBreakerOptions {
  readonly clock: Clock;
  /** Asks the store something that does no harm; a rejection means that it is still away. */
  readonly probe: () => Promise<unknown>;
  readonly onChange: (open: boolean) => void;
}

/**
 * The circuit breaker of a store. Opens after five failures in a row; then nobody asks the store until a probe, about
 * each second, succeeds. No request is ever a probe, so that none waits for a store that is away.
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

  /** Whether the store is not to be asked. */
  get open(): boolean {
    return this.#open;
  }

  /** The store answered. Late answers from before it opened do not close it. */
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

  /** No more probes. */
  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
  }

  /** With jitter, so that many replicas do not come back at the same moment. */
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

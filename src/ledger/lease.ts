import type { Clock } from "../core/clock.ts";
import { type LedgerStore, PROCESS_LEASE_MS } from "./ledger-store.ts";

const RENEW_MS = PROCESS_LEASE_MS / 3;
/** Pause after a failed renewal. */
const RETRY_MS = 1_000;
/** Age of the last renewal beyond which this process must have stood still, or its wall clock was changed. */
const GAP_MS = PROCESS_LEASE_MS / 2;
/** Limit of `settleLost` calls per run, so that its statements do not block others on a slow database. */
const MAX_BATCHES = 20;

export interface LeaseOptions {
  readonly store: Pick<LedgerStore, "renewLease" | "settleLost">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Called with the cause when a renewal fails, once until a renewal succeeds again. */
  readonly onTrouble: (cause: unknown) => void;
}

/**
 * Lease of this process on its completions and their holds. It also settles the completions of processes whose leases have expired.
 * Anything that keeps this process from renewing (the database is unavailable, the machine sleeps) may keep the others too. So this
 * process settles completions of others only after its own renewals have succeeded for a whole lease without a gap.
 */
export class Lease {
  readonly #options: LeaseOptions;
  /** Start of the last successful renewal, by both clocks. */
  #renewed: { readonly monotonicMs: number; readonly wallMs: number } | undefined;
  /** Monotonic time of the first renewal since the last failure or gap. */
  #steadySinceMs: number | undefined;
  #isFailing = false;
  #closed = false;
  #cancelNext = (): void => undefined;
  #renewing: Promise<void> | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Takes the lease, and renews it until it is closed. Rejects when it cannot be taken. */
  async open(): Promise<void> {
    await this.#renew();
    this.#plan(RENEW_MS);
  }

  /** Takes the lease once `reached` has resolved, and renews it until it is closed. */
  openAfter(reached: Promise<void>): void {
    const begin = (): void => void (this.#renewing = this.#renewAndPlan());
    reached.then(() => this.#closed || begin()).catch(() => undefined);
  }

  /** Stops renewing. Resolves when a running renewal has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelNext();
    await this.#renewing;
  }

  /** Settles a bounded number of completions and holds of lost processes. Returns their number. Stops early when the signal aborts. */
  async settle(signal: AbortSignal): Promise<number> {
    let total = 0;
    for (let batch = 0; batch < MAX_BATCHES && this.#isSteady() && !signal.aborted; batch++) {
      const count = await this.#options.store.settleLost();
      if (count === 0) break;
      total += count;
    }
    return total;
  }

  #plan(delayMs: number): void {
    if (this.#closed) return;
    this.#cancelNext = this.#options.clock.after(delayMs, () => {
      this.#renewing = this.#renewAndPlan();
    });
  }

  async #renewAndPlan(): Promise<void> {
    try {
      await this.#renew();
      this.#isFailing = false;
      this.#plan(RENEW_MS);
    } catch (cause) {
      if (!this.#isFailing) this.#options.onTrouble(cause);
      this.#isFailing = true;
      this.#plan(RETRY_MS);
    }
  }

  async #renew(): Promise<void> {
    const { store, clock, process } = this.#options;
    if (this.#hasGap()) this.#steadySinceMs = undefined;
    const began = { monotonicMs: clock.monotonic(), wallMs: clock.now() };
    try {
      await store.renewLease(process);
    } catch (error) {
      this.#steadySinceMs = undefined;
      throw error;
    }
    this.#renewed = began;
    this.#steadySinceMs ??= clock.monotonic();
  }

  #isSteady(): boolean {
    if (this.#steadySinceMs === undefined || this.#hasGap()) return false;
    return this.#options.clock.monotonic() - this.#steadySinceMs >= PROCESS_LEASE_MS;
  }

  /**
   * Whether GAP_MS have passed since the last renewal, by either clock: `monotonic` may stop while the machine sleeps, and leases are
   * compared by wall clocks.
   */
  #hasGap(): boolean {
    if (this.#renewed === undefined) return false;
    const { clock } = this.#options;
    const { monotonicMs, wallMs } = this.#renewed;
    return Math.max(clock.monotonic() - monotonicMs, clock.now() - wallMs) > GAP_MS;
  }
}

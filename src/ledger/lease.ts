import type { Clock } from "../core/clock.ts";
import { type LedgerStore, PROCESS_LEASE_MS } from "./ledger-store.ts";

export interface LeaseOptions {
  readonly store: Pick<LedgerStore, "renewLease" | "settleLost">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
}

/**
 * Lease of this process on its completions and their holds, and the end of other processes' leases. A process whose database
 * was unavailable could not renew its lease: so this one settles the completions of others only when its own renewals have
 * worked for a whole lease.
 */
export class Lease {
  readonly #options: LeaseOptions;
  /** Monotonic time of the first renewal since the last failed one. */
  #steadySinceMs: number | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Renews the lease, and settles completions of lost processes. Returns their number. Call it several times in PROCESS_LEASE_MS. */
  async renew(): Promise<number> {
    const { store, clock, process } = this.#options;
    try {
      await store.renewLease(process);
    } catch (error) {
      this.#steadySinceMs = undefined;
      throw error;
    }
    this.#steadySinceMs ??= clock.monotonic();
    return clock.monotonic() - this.#steadySinceMs < PROCESS_LEASE_MS ? 0 : store.settleLost();
  }
}

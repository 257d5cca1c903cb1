import type { Clock } from "../core/clock.ts";

/** Length of each of the two windows of a record. */
const WINDOW_MS = 30_000;
/** Accounts with their own count per window; further accounts share one count. */
const MAX_ACCOUNTS = 64;

/** Largest number of accounts that a tally leaves out. */
const MOST_LEFT_OUT = 2;

/** Number of attempts, and of those that failed because of the upstream model. */
export interface Tally {
  readonly attempts: number;
  readonly failures: number;
}

type Accounts = Map<string, { attempts: number; failures: number }>;

/** Attempts at one upstream model in the last 30 to 60 s, by account. */
export class TrackRecord {
  readonly #clock: Pick<Clock, "monotonic">;
  #beganMs: number;
  #latest: Accounts = new Map();
  #before: Accounts = new Map();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#beganMs = clock.monotonic();
  }

  add(accountId: string, { failed }: { readonly failed: boolean }): void {
    this.#turn();
    const key = this.#latest.has(accountId) || this.#latest.size < MAX_ACCOUNTS ? accountId : "";
    let counts = this.#latest.get(key);
    if (counts === undefined) this.#latest.set(key, (counts = { attempts: 0, failures: 0 }));
    counts.attempts += 1;
    if (failed) counts.failures += 1;
  }

  /**
   * Sum over accounts, without the accounts with most failures, whose own requests may be the cause: half of all accounts, at
   * most MOST_LEFT_OUT.
   */
  tally(): Tally {
    this.#turn();
    const accounts: Accounts = new Map();
    for (const [accountId, { attempts, failures }] of [...this.#before, ...this.#latest]) {
      const sum = accounts.get(accountId) ?? { attempts: 0, failures: 0 };
      accounts.set(accountId, { attempts: sum.attempts + attempts, failures: sum.failures + failures });
    }
    const all = [...accounts.values()].toSorted((one, other) => other.failures - one.failures);
    const counted = all.slice(Math.min(Math.floor(all.length / 2), MOST_LEFT_OUT));
    return counted.reduce<Tally>(
      (sum, { attempts, failures }) => ({ attempts: sum.attempts + attempts, failures: sum.failures + failures }),
      { attempts: 0, failures: 0 },
    );
  }

  /** Forgets all attempts. */
  clear(): void {
    this.#latest = new Map();
    this.#before = new Map();
  }

  #turn(): void {
    const nowMs = this.#clock.monotonic();
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    this.#before = elapsedMs < 2 * WINDOW_MS ? this.#latest : new Map();
    this.#latest = new Map();
    this.#beganMs = nowMs;
  }
}

import type { LedgerEntry, NewLedgerEntry } from "../core/ledger.ts";

/** What a key's line or an account has spent in a month, and what is held for completions under way. */
export interface Spending {
  readonly spentMicroUsd: number;
  readonly heldMicroUsd: number;
}

/** Where the ledger is kept. Every method answers, or rejects within a few seconds. */
export interface LedgerStore {
  /**
   * Writes all or none, durably. Entries that are there already change nothing; the others also settle what budgets hold for
   * them, are added to the month's spending of their key and account and to the usage of their hour, and note when the key
   * was last used.
   */
  insert(entries: readonly NewLedgerEntry[]): Promise<void>;
  /**
   * The newest entries first, at most `limit`, of those that started before `beforeMs`, or then and come after `beforeId`:
   * within a millisecond the largest ID is first.
   */
  list(query: {
    readonly limit: number;
    readonly beforeMs: number;
    readonly beforeId?: string | undefined;
    readonly accountId?: string | undefined;
  }): Promise<readonly LedgerEntry[]>;
  /** What each of these subjects (`key:…` for a key's line, `account:…`) has spent in a month (`2026-11`), in their order. */
  spending(subjects: readonly string[], month: string): Promise<readonly Spending[]>;
  /**
   * Removes the oldest entries that started before, at most a thousand, and answers how many: to be called again until
   * none is left. What months have spent and the sums of usage stay.
   */
  prune(beforeMs: number): Promise<number>;
}

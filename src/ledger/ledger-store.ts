import type { LedgerEntry, NewLedgerEntry } from "../core/ledger.ts";

/** What a key's line or an account has spent in a month, and what is held for completions under way. */
export interface Spending {
  readonly spentMicroUsd: number;
  readonly heldMicroUsd: number;
}

/** Where a page of the log has ended. */
export interface LogPosition {
  readonly endedAtMs: number;
  readonly completionId: string;
}

/** Which entries of the log. What is left out does not narrow. */
export interface LogQuery {
  readonly limit: number;
  readonly after?: LogPosition | undefined;
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The requested one or the one that served. */
  readonly model?: string | undefined;
  /** `failed` is every one but `served`. */
  readonly outcome?: LedgerEntry["outcome"] | "failed" | undefined;
  /** Those that ended then or later, in Unix milliseconds. */
  readonly sinceMs?: number | undefined;
  /** Those that ended before. */
  readonly untilMs?: number | undefined;
}

/** Some entries of the log. */
export interface LogPage {
  readonly entries: readonly LedgerEntry[];
  /** Where the next page goes on; undefined after the last one. */
  readonly next: LogPosition | undefined;
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
   * Resolves when all that was inserted before, by any process, is where the other methods read it; they wait for this
   * themselves. Rejects when something keeps it from getting there.
   */
  flush(): Promise<void>;
  /**
   * A page of the log, the latest to end first, and within a millisecond the largest ID. For what no index leads to (a model,
   * an outcome) it looks through a bounded number of entries: there may then be a next page although this one is not full.
   */
  list(query: LogQuery): Promise<LogPage>;
  /** By the completion's ID or the request's: of several with the same request ID the latest. Of one account, or of any. */
  find(id: string, accountId?: string): Promise<LedgerEntry | undefined>;
  /** What each of these subjects (`key:…` for a key's line, `account:…`) has spent in a month (`2026-11`), in their order. */
  spending(subjects: readonly string[], month: string): Promise<readonly Spending[]>;
  /**
   * Removes the oldest entries that ended before, at most a thousand, and answers how many: to be called again until
   * none is left. What months have spent and the sums of usage stay.
   */
  prune(beforeMs: number): Promise<number>;
}

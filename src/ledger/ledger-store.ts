import type { LedgerEntry, NewLedgerEntry } from "../core/ledger.ts";

/** What usage is added up by. */
export type UsageGroup = "model" | "key" | "account" | "day";

/** Which completions: by when they started (Unix milliseconds; `untilMs` exclusive), and whose. */
export interface UsageQuery {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly by: UsageGroup;
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
}

/** What the completions of one group come to. */
export interface UsageRow {
  /** The served model (or the requested one when none served), the key's or the account's ID, or the day in UTC as `2026-11-21`. */
  readonly group: string;
  /** The key's or the account's name (its e-mail address where it has one); undefined for the other groups. */
  readonly name: string | undefined;
  readonly completions: number;
  /** Of them: those that were not served. */
  readonly failed: number;
  readonly partial: number;
  readonly estimated: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly imageTokens: number;
  readonly costMicroUsd: number;
}

/** Where the ledger is kept. Every method answers, or rejects within a few seconds. */
export interface LedgerStore {
  /**
   * Writes all or none, durably. Entries that are there already change nothing; the others also settle what budgets hold for
   * them, are added to the month's spending of their key and account, and note when the key was last used.
   */
  insert(entries: readonly NewLedgerEntry[]): Promise<void>;
  /** Largest cost first; days in order. */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
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
  /** What a key or an account (`key:…`, `account:…`) has spent in a month (`2026-11`), and what is held besides. */
  spending(subject: string, month: string): Promise<{ readonly spentMicroUsd: number; readonly heldMicroUsd: number }>;
  /**
   * Removes the oldest entries that started before, at most a thousand, and answers how many: to be called again until
   * none is left. What months have spent stays.
   */
  prune(beforeMs: number): Promise<number>;
}

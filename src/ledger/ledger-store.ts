import type { LedgerEntry, NewLedgerEntry } from "../core/ledger.ts";

/** Spending of a key family or account in a month, and its holds of completions in flight. */
export interface Spending {
  readonly spentMicroUsd: number;
  readonly heldMicroUsd: number;
  /** Limit of an end user or a session of its own. Default: that of its key. */
  readonly limitMicroUsd?: number | undefined;
}

/** End of a page of the log. */
export interface LogPosition {
  readonly endedAtMs: number;
  readonly completionId: string;
}

/** Whom and what completions are for. Absent fields do not filter. */
export interface AttributionFilter {
  readonly endUser?: string | undefined;
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly tag?: string | undefined;
}

/** Filter of log entries. Absent fields do not filter. */
export interface LogQuery extends AttributionFilter {
  readonly limit: number;
  readonly after?: LogPosition | undefined;
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The requested model or the one that served. */
  readonly model?: string | undefined;
  /** `failed`: all but `served`. */
  readonly outcome?: LedgerEntry["outcome"] | "failed" | undefined;
  /** Earliest end, in Unix milliseconds. */
  readonly sinceMs?: number | undefined;
  /** End before this time. */
  readonly untilMs?: number | undefined;
}

/** What sorted entries are sorted by, the largest first: then the latest end, then the largest ID. `time` is that of the end. */
export type LogOrder = "time" | "cost" | "duration" | "tokens" | "firstContent";

/** Which entries to sort. `sinceMs` must be that of the first page for later ones. */
export interface SortedQuery extends Omit<LogQuery, "after"> {
  readonly order: LogOrder;
  /** The reverse of all of that. Default: false. */
  readonly isAscending?: boolean | undefined;
  readonly after?: (LogPosition & { readonly value: number }) | undefined;
}

/** Entries that are sorted at most. */
export const SORTED_ENTRIES = 50_000;

/** A page of sorted entries. */
export interface SortedPage {
  readonly entries: readonly LedgerEntry[];
  /** Start of the next page; undefined after the last one. */
  readonly next: SortedQuery["after"];
  /** End of the earliest entry that was sorted, where there are earlier ones in the time of the query. */
  readonly sortedSinceMs: number | undefined;
}

/** A page of the log. */
export interface LogPage {
  readonly entries: readonly LedgerEntry[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** Time after which a process counts as ended that has not renewed its lease. */
export const PROCESS_LEASE_MS = 30_000;

/** Completions of a note at most. */
export const MAX_NOTED = 100;

/** A batch of completions that a process begins together. */
export interface Note {
  /** Unique among all processes. */
  readonly id: string;
  /** ID of the process. */
  readonly process: string;
  /** The entries that they get if the process ends without inserting them; at most MAX_NOTED. */
  readonly entries: readonly NewLedgerEntry[];
}

/** The store of the ledger. Methods answer or reject within a few seconds. */
export interface LedgerStore {
  /**
   * Stores a note, if there is one, and removes those with the IDs `done`, whose completions all have entries. The note survives
   * the end of the process; a crash of the database or of the machine can lose the notes of its last second.
   */
  begin(note: Note | undefined, done: readonly string[]): Promise<void>;
  /** Renews the lease of a process, PROCESS_LEASE_MS long. Its completions and holds are its own as long as it lasts. */
  renewLease(process: string): Promise<void>;
  /**
   * Ends the completions of processes whose leases have ended: writes entries for those that were begun and have none, with the
   * amounts that budgets hold for them, and releases the holds of all others. A bounded number of both: call it until none is
   * left. Returns their number. An entry that is inserted later replaces the one written here.
   */
  settleLost(): Promise<number>;
  /**
   * Writes all entries or none, durably. Existing entries change nothing; new ones also settle their holds, are added to the
   * month's spending of their key and account and to the usage of their hour, and update the last use of the key.
   */
  insert(entries: readonly NewLedgerEntry[]): Promise<void>;
  /**
   * Resolves when all earlier inserts, of any process, are visible to the other methods, which wait for it themselves. Rejects
   * when the compaction fails.
   */
  flush(): Promise<void>;
  /**
   * Number of entries that this process has dropped since the last call, because the month in which they started is being removed
   * past its retention. Their holds were settled.
   */
  takeDropped(): number;
  /**
   * A page of the log, latest end first, then largest ID. Filters without an index (model, outcome, attribution) search a bounded number of
   * entries: a page that is not full may have a next one.
   */
  list(query: LogQuery): Promise<LogPage>;
  /**
   * A page of entries by another order. Only the latest SORTED_ENTRIES of the query's time, account or key are sorted. Entries without
   * first content are left out when they are sorted by it.
   */
  listSorted(query: SortedQuery): Promise<SortedPage>;
  /** Finds an entry by completion ID or request ID (the latest of several), of one account or of any. */
  find(id: string, accountIds?: readonly string[]): Promise<LedgerEntry | undefined>;
  /** Spending of each subject (`key:…` of a key family, `account:…`) in a month (`2026-11`), in the given order. */
  spending(subjects: readonly string[], month: string): Promise<readonly Spending[]>;
  /**
   * Prepares the tables for entries that start in the months of these times, where each month has a table of its own. Returns
   * the number of new tables. An entry of another month is accepted too, and then waits for its table.
   */
  prepareMonths(timesMs: readonly number[]): Promise<number>;
  /**
   * Removes the oldest entries that ended before this time, at most a thousand, or where each month has a table of its own, the
   * months that ended before it. Returns the number of entries or months: call it until none is left. The months' spending and
   * the sums of usage stay.
   */
  prune(beforeMs: number): Promise<number>;
}

import type { LedgerEntry, NewLedgerEntry } from "../core/ledger.ts";

/** Spending of a subject, such as a key family or account, in a period, and its holds for completions in flight. */
interface Spending {
  readonly spentMicroUsd: number;
  readonly heldMicroUsd: number;
  /** Own limit of an end user or a session. Default: the limit of its key. */
  readonly limitMicroUsd?: number | undefined;
}

/** End of a page of the log. */
export interface LogPosition {
  readonly endedAtMs: number;
  readonly completionId: string;
}

/** Filter by the attribution of completions. Absent fields do not filter. */
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

/** Sort key of entries, the largest first; equal ones by the latest end, then by the largest ID. `time`: end of the completion. */
export type LogOrder = "time" | "cost" | "duration" | "tokens" | "firstContent";

/** A query of sorted entries. Later pages must have the same `sinceMs` as the first one. */
export interface SortedQuery extends Omit<LogQuery, "after"> {
  readonly order: LogOrder;
  /** Whether the whole order is reversed. Default: false. */
  readonly isAscending?: boolean | undefined;
  readonly after?: (LogPosition & { readonly value: number }) | undefined;
}

/** Limit of entries that are sorted. */
export const SORTED_ENTRIES = 50_000;

/** A page of sorted entries. */
export interface SortedPage {
  readonly entries: readonly LedgerEntry[];
  /** Start of the next page; undefined after the last one. */
  readonly next: SortedQuery["after"];
  /** End of the earliest sorted entry; undefined when all entries in the time range of the query were sorted. */
  readonly sortedSinceMs: number | undefined;
}

/** A page of the log. */
interface LogPage {
  readonly entries: readonly LedgerEntry[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** Lease of a process. A process that has not renewed it counts as lost. */
export const PROCESS_LEASE_MS = 30_000;

/** Limit of completions per note. */
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
   * Settles the completions of processes whose leases have expired: writes entries for noted completions without an entry, with the
   * amounts that budgets hold for them, and releases all other holds of these processes. Settles a bounded number and returns it: call
   * it until it returns 0. An entry that is inserted later replaces the one written here.
   */
  settleLost(): Promise<number>;
  /**
   * Writes all entries or none, durably. Existing entries are ignored. A new entry also settles its hold, is added to the month's
   * spending of its key and account and to the usage of its hour, and updates the last use of the key.
   */
  insert(entries: readonly NewLedgerEntry[]): Promise<void>;
  /**
   * Resolves when all earlier inserts, of any process, are visible to the other methods. Those methods call it themselves. Rejects when
   * the compaction fails.
   */
  flush(): Promise<void>;
  /**
   * Number of entries that this process has dropped since the last call, because the month in which they started is past its
   * retention and being removed. Their holds were settled.
   */
  takeDropped(): number;
  /**
   * A page of the log, latest end first, then largest ID. Filters without an index (model, outcome, attribution) search a bounded number
   * of entries, so a page that is not full may have a next one.
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
   * the number of new tables. An entry of a month without a table is accepted as well, and waits for the table.
   */
  prepareMonths(timesMs: readonly number[]): Promise<number>;
  /**
   * Removes the oldest entries that ended before this time, at most a thousand; where each month has its own table, the months that
   * ended before it. Returns the number of entries or months: call it until it returns 0. The months' spending and the sums of usage
   * stay.
   */
  prune(beforeMs: number): Promise<number>;
}

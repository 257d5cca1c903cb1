import type { LedgerEntry } from "../core/ledger.ts";
import type { LogPosition, LogQuery } from "./ledger-store.ts";

/** Model of refused requests that named none, or none that exists. */
export const UNKNOWN_MODEL = "unknown";

/** Number of refused requests of one minute with the same caller, model and failure. */
export interface RefusalCount {
  /** A time in that minute, in Unix milliseconds. */
  readonly atMs: number;
  /** NO_CALLER, with the key, without a valid key. */
  readonly accountId: string;
  readonly keyId: string;
  /** A configured model, or UNKNOWN_MODEL. */
  readonly model: string;
  readonly outcome: string;
  readonly refused: number;
}

/** A refused request. */
export interface RefusedRequest {
  /** The ledger entry that it would have. */
  readonly entry: LedgerEntry;
  /** Error message that the caller got. */
  readonly message: string;
}

/** A page of refused requests. */
export interface RefusalPage {
  readonly requests: readonly RefusedRequest[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** The store of refused requests. Methods answer or reject within a few seconds. */
export interface RefusalStore {
  /**
   * Adds counts to the sums of usage, of their minutes and hours, and stores samples; all or nothing. A crash of the machine may undo
   * the last second. Known samples change nothing.
   */
  add(counts: readonly RefusalCount[], samples: readonly RefusedRequest[]): Promise<void>;
  /**
   * A page of the samples, latest end first, then largest ID. Filters without an index search a bounded number of them: a page that is
   * not full may have a next one.
   */
  list(query: LogQuery): Promise<RefusalPage>;
  /** Finds a sample by completion ID or request ID (the latest of several), of one account or of any. */
  find(id: string, accountIds?: readonly string[]): Promise<RefusedRequest | undefined>;
  /** Prepares the tables of the days of these times, where each day has a table of its own. Returns the number of new tables. */
  prepareDays(timesMs: readonly number[]): Promise<number>;
  /**
   * Removes the oldest samples that ended before this time, at most a thousand, or where each day has a table of its own, the days
   * that ended before it. Returns the number of samples or days: call it until none is left.
   */
  prune(beforeMs: number): Promise<number>;
}

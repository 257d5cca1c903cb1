import type { LedgerEntry } from "../core/ledger.ts";
import type { LogPosition, LogQuery } from "./ledger-store.ts";

/** Model of refused requests that named no model, or one that does not exist. */
export const UNKNOWN_MODEL = "unknown";

/** Number of refused requests of one minute with the same caller, model and failure. */
export interface RefusalCount {
  /** A time in that minute, in Unix milliseconds. */
  readonly atMs: number;
  /** Account and key; both are NO_CALLER for a request without a valid key. */
  readonly accountId: string;
  readonly keyId: string;
  /** A configured model, or UNKNOWN_MODEL. */
  readonly model: string;
  readonly outcome: string;
  readonly refused: number;
}

/** A refused request. */
export interface RefusedRequest {
  /** Its facts in the form of a ledger entry. */
  readonly entry: LedgerEntry;
  /** Error message that was sent to the caller. */
  readonly message: string;
}

/** A page of refused requests. */
interface RefusalPage {
  readonly requests: readonly RefusedRequest[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** The store of refused requests. Methods answer or reject within a few seconds. */
export interface RefusalStore {
  /**
   * Adds counts to the sums of usage of their minutes and hours, and stores samples, all or nothing. A crash of the machine may undo
   * the last second. Existing samples are ignored.
   */
  add(counts: readonly RefusalCount[], samples: readonly RefusedRequest[]): Promise<void>;
  /**
   * A page of the samples, latest end first, then largest ID. Filters without an index search a bounded number of samples, so a page
   * that is not full may have a next one.
   */
  list(query: LogQuery): Promise<RefusalPage>;
  /** Finds a sample by completion ID or request ID (the latest of several), of one account or of any. */
  find(id: string, accountIds?: readonly string[]): Promise<RefusedRequest | undefined>;
  /** Prepares the tables of the days of these times, where each day has a table of its own. Returns the number of new tables. */
  prepareDays(timesMs: readonly number[]): Promise<number>;
  /**
   * Removes the oldest samples that ended before this time, at most a thousand; where each day has its own table, the days that ended
   * before it. Returns the number of samples or days: call it until it returns 0.
   */
  prune(beforeMs: number): Promise<number>;
}

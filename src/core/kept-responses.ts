import type { Caller } from "./call.ts";

/** An answer to keep, with its conversation. */
export interface KeptResponse {
  readonly id: string;
  /** In a form of its format's own; at most MAX_KEPT_BYTES. */
  readonly content: Buffer;
}

/** Limit of the content of one response: that of a request. */
export const MAX_KEPT_BYTES = 32 * 1024 * 1024;

/** Answers that are kept for the keys of their account. */
export interface KeptResponses {
  /** Counts a request that needs no completion. Throws `rate_limited`. */
  count(caller: Caller): Promise<void>;
  /**
   * The content; undefined when it is unknown, expired, removed, of another account or encrypted with another key. Throws
   * `overloaded` when the database is unavailable.
   */
  find(accountId: string, id: string): Promise<Buffer | undefined>;
  /** Whether it is kept now. Has read the content when it returns; never rejects. */
  keep(accountId: string, response: KeptResponse): Promise<boolean>;
  /** Whether there was one. Throws `overloaded` when the database is unavailable. */
  remove(accountId: string, id: string): Promise<boolean>;
}

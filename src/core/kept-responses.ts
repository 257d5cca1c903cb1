import type { Caller } from "./call.ts";

/** An answer to keep, with its conversation. */
export interface KeptResponse {
  readonly id: string;
  /** In a form of its format's own; at most MAX_KEPT_BYTES. */
  readonly content: Buffer;
}

/** Limit of the content of one response: a million tokens of text. One is read or written at a time. */
export const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A kept answer that was found. */
export interface FoundResponse {
  /** Length of the content, at least. */
  readonly bytes: number;
  /** The content; undefined when it is encrypted with another key. Synchronous work that grows with its length. */
  readonly open: () => Buffer | undefined;
}

/** Answers that are kept for the keys of their account. */
export interface KeptResponses {
  /** Counts a request that needs no completion. Throws `rate_limited`. */
  count(caller: Caller): Promise<void>;
  /** Undefined when it is unknown, expired, removed or of another account. Throws `overloaded` when the database is unavailable. */
  find(accountId: string, id: string): Promise<FoundResponse | undefined>;
  /** Whether it is kept now. Has read the content when it returns; never rejects. */
  keep(accountId: string, response: KeptResponse): Promise<boolean>;
  /** Whether there was one. Throws `overloaded` when the database is unavailable. */
  remove(accountId: string, id: string): Promise<boolean>;
}

import type { Caller } from "./call.ts";

/** An answer to keep, with its conversation. */
export interface KeptResponse {
  readonly id: string;
  /** Encoded by the wire format; at most MAX_KEPT_BYTES. */
  readonly content: Buffer;
}

/** Limit of the content of one response, about a million tokens of text. One response is read or written at a time. */
export const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A kept answer that was found. */
interface FoundResponse {
  /** Lower bound of the content's length. */
  readonly bytes: number;
  /** Returns the content; undefined when it is encrypted with another key. Synchronous work that grows with its length. */
  readonly open: () => Buffer | undefined;
}

/** Answers that are kept for the keys of their account. */
export interface KeptResponses {
  /** Counts a request that needs no completion. Throws `rate_limited`. */
  count(caller: Caller): Promise<void>;
  /** Undefined when it is unknown, expired, removed or of another account. Throws `overloaded` when the database is unavailable. */
  find(accountId: string, id: string): Promise<FoundResponse | undefined>;
  /** Resolves with whether the response was stored. Has read `content` when it returns, so the caller may reuse it. Never rejects. */
  keep(accountId: string, response: KeptResponse): Promise<boolean>;
  /** Resolves with whether the response existed. Throws `overloaded` when the database is unavailable. */
  remove(accountId: string, id: string): Promise<boolean>;
}

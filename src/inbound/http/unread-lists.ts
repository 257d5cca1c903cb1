import type { ServerResponse } from "node:http";
import { Failure } from "../../core/failure.ts";

/** Limit of bytes of a key's lists that are written and not read: a list of a thousand models has some 300 KB. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

/** Limits the lists of models of each key that its callers do not read. They take no slot, and so no other limit counts them. */
export class UnreadLists {
  readonly #bytes = new Map<string, number>();

  /** Throws `rate_limited` when too much of the key's lists is unread. To be called before another one is written. */
  require(keyFamilyId: string): void {
    if ((this.#bytes.get(keyFamilyId) ?? 0) < MAX_UNREAD_BYTES) return;
    const text =
      "Rate limit reached for this API key: its lists of models are not read. Read them, and try again in 1 s.";
    throw new Failure("rate_limited", text, { retryAfterMs: 1_000 });
  }

  /** Counts what is unread of a list until it is sent, or its connection or stream closes. */
  count(keyFamilyId: string, response: ServerResponse): void {
    const bytes = response.writableLength;
    if (bytes === 0 || response.destroyed) return;
    this.#add(keyFamilyId, bytes);
    response.once("close", () => this.#add(keyFamilyId, -bytes));
  }

  #add(keyFamilyId: string, bytes: number): void {
    const sum = (this.#bytes.get(keyFamilyId) ?? 0) + bytes;
    if (sum === 0) this.#bytes.delete(keyFamilyId);
    else this.#bytes.set(keyFamilyId, sum);
  }
}

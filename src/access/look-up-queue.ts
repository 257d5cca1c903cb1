import { Failure } from "../core/failure.ts";

/** Limit of look-ups that wait for a query. Further ones are refused, before anything of them is kept. */
const MAX_WAITING = 2_000;

/** Look-ups of a LookUpQueue. */
export interface LookUpLimits {
  /** Limit of look-ups in one query. */
  readonly perQuery: number;
  /** Limit of queries in flight. */
  readonly inFlight: number;
}

interface Waiting<Asked, Found> {
  readonly asked: Asked;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Looks up secrets that may be unknown: clients can send any number of them, and the database's queue is shared with all
 * other work. Look-ups therefore wait here, first in, first out, and waiting ones share a query.
 */
export class LookUpQueue<Asked, Found> {
  readonly #query: (asked: readonly Asked[]) => Promise<readonly (Found | undefined)[]>;
  readonly #limits: LookUpLimits;
  readonly #waiting: Waiting<Asked, Found>[] = [];
  #inFlight = 0;

  /** `query` returns its results in the order of the look-ups. */
  constructor(query: (asked: readonly Asked[]) => Promise<readonly (Found | undefined)[]>, limits: LookUpLimits) {
    this.#query = query;
    this.#limits = limits;
  }

  /**
   * Undefined for an unknown secret. Throws `overloaded`, and does not reject, when 2,000 look-ups wait: the store is not
   * asked. Rejects with the reason of its query, and with that of the query for which it waited: the store is unavailable
   * then, and each query could take as long.
   */
  find(asked: Asked): Promise<Found | undefined> {
    if (this.#waiting.length >= MAX_WAITING)
      throw new Failure("overloaded", "Too many keys and sessions are being checked. Try again shortly.", {
        unavailable: "busy",
        retryAfterMs: 1_000,
      });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    if (this.#inFlight >= this.#limits.inFlight) return;
    this.#inFlight += 1;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#limits.perQuery);
      try {
        const found = await this.#query(batch.map(({ asked }) => asked));
        batch.forEach(({ resolve }, index) => resolve(found[index]));
      } catch (reason) {
        for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(reason);
      }
    }
    this.#inFlight -= 1;
  }
}

import { BoundedMap } from "../core/bounded-map.ts";
import type { LimitFacts } from "../core/limiter.ts";
import type { Principal } from "../core/principal.ts";

/** Many keys' limits cost little; those that were heard of longest ago go first. */
const MAX_KEYS = 50_000;

const UNKNOWN: LimitFacts = { requests: undefined, tokens: undefined };

/** What another process last said of each key's limits. */
export class LastLimits {
  readonly #byKey = new BoundedMap<string, LimitFacts>(MAX_KEYS);

  /** Keeps what was said. */
  note({ keyId }: Principal, facts: LimitFacts): void {
    this.#byKey.set(keyId, facts);
  }

  /** What was said last; nothing of a key that was never spoken of. */
  peek({ keyId }: Principal): LimitFacts {
    return this.#byKey.get(keyId) ?? UNKNOWN;
  }
}

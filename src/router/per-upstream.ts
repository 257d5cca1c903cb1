import { BoundedMap } from "../core/bounded-map.ts";
import type { Model } from "../core/model.ts";

/** Limit of entries for accounts' own credentials, which the configuration does not bound. The least recently used is evicted. */
const MAX_OWN = 10_000;

/** State of a process by upstream model or provider, with separate entries for each account's own credential. */
export class PerUpstream<V> {
  /** Entries for the configured credentials, bounded by the configuration. */
  readonly shared = new Map<string, V>();
  readonly #own = new BoundedMap<string, V>(MAX_OWN);

  /** The entry with this key, which must differ for each credential. */
  getOrAdd({ ownCredential }: Model, key: string, make: () => V): V {
    const entries = ownCredential === undefined ? this.shared : this.#own;
    const known = entries.get(key);
    if (known !== undefined && ownCredential === undefined) return known;
    const entry = known ?? make();
    // Set again even if it exists, to make it the most recently used.
    entries.set(key, entry);
    return entry;
  }

  /** Removes all entries but the shared ones with these keys. Entries of own credentials stay if any key is given. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.shared.keys()) if (!keys.has(key)) this.shared.delete(key);
    if (keys.size === 0) this.#own.clear();
  }
}

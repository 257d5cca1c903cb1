import { BoundedMap } from "../core/bounded-map.ts";
import type { Model } from "../core/model.ts";

/** Entries for accounts' own credentials, whose number only accounts bound: those not used for the longest time are forgotten. */
const MAX_OWN = 10_000;

/** What a process knows of upstream models or providers, apart for each account's own credential. */
export class PerUpstream<V> {
  /** By the configured credentials: as many as are configured. */
  readonly shared = new Map<string, V>();
  readonly #own = new BoundedMap<string, V>(MAX_OWN);

  /** The entry with this key, which is another one for each credential. */
  getOrAdd({ ownCredential }: Model, key: string, make: () => V): V {
    const entries = ownCredential === undefined ? this.shared : this.#own;
    const known = entries.get(key);
    if (known !== undefined && ownCredential === undefined) return known;
    const entry = known ?? make();
    // Also when it is known: it becomes the latest used.
    entries.set(key, entry);
    return entry;
  }

  /** Forgets all entries but the shared ones with these keys; keeps those of own credentials if there is one. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.shared.keys()) if (!keys.has(key)) this.shared.delete(key);
    if (keys.size === 0) this.#own.clear();
  }
}

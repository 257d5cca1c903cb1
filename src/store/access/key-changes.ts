import { sql, type Kysely } from "kysely";
import type { KeyChangeFeed } from "../../access/key-store.ts";
import type { Database } from "../database.ts";
import type { Schema } from "../schema.ts";

/** PostgreSQL channel on which processes notify each other of changed keys. */
export const KEY_CHANNEL = "parley_keys";
/** Sent in place of a hash when any key may have changed. */
export const ANY_KEY = "*";

/** Keys that are announced one by one; of more, all keys are confirmed again. */
export const MAX_ANNOUNCED = 100;

/** The announcements for these changed keys: their hashes, or `ANY_KEY` for too many. */
export function announced(hashes: readonly string[]): readonly string[] {
  return hashes.length > MAX_ANNOUNCED ? [ANY_KEY] : hashes;
}

/** Notifies the caches of this process of changed keys, and with PostgreSQL those of other processes. */
export class KeyChanges implements KeyChangeFeed {
  readonly #kind: Database["kind"];
  readonly #listeners = new Set<(hash: string | undefined) => void>();

  constructor({ kind }: Pick<Database, "kind">) {
    this.#kind = kind;
  }

  subscribe(changed: (hash: string | undefined) => void): () => void {
    // A listener of its own for each subscriber, even when one subscribes twice.
    const listener = (hash: string | undefined): void => changed(hash);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls the listeners of this process. `ANY_KEY` stands for all keys. */
  announce(hash: string): void {
    for (const listener of this.#listeners) listener(hash === ANY_KEY ? undefined : hash);
  }

  /** Notifies other processes when the transaction commits. */
  async notify(transaction: Kysely<Schema>, hash: string): Promise<void> {
    if (this.#kind === "postgres") await sql`select pg_notify(${KEY_CHANNEL}, ${hash})`.execute(transaction);
  }

  /** Makes a change in a transaction and announces it: `work` answers the hashes of the keys that it has changed. */
  async during(
    database: Database,
    work: (transaction: Kysely<Schema>) => Promise<readonly string[]>,
  ): Promise<boolean> {
    const hashes = await database.transaction(async (transaction) => {
      const changed = await work(transaction);
      for (const hash of changed) await this.notify(transaction, hash);
      return changed;
    });
    for (const hash of hashes) this.announce(hash);
    return hashes.length > 0;
  }
}

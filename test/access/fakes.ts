import type { KeyRecord, KeyStore, NewKey } from "../../src/access/key-store.ts";
import type { Clock } from "../../src/core/clock.ts";

/** A clock that stands still until it is told. */
export function fakeClock(): Clock & { advance(byMs: number): void } {
  let elapsedMs = 0;
  return {
    now: () => 1_700_000_000_000 + elapsedMs,
    monotonic: () => elapsedMs,
    after: () => {
      throw new Error("nothing here waits");
    },
    advance: (byMs) => {
      elapsedMs += byMs;
    },
  };
}

/** Keys in memory, as the port promises them. */
export function memoryKeyStore(): KeyStore & { readonly rows: Map<string, NewKey> } {
  const rows = new Map<string, NewKey>();
  const change = (id: string, isAllowed: (record: KeyRecord) => boolean, changes: Partial<KeyRecord>): boolean => {
    const row = rows.get(id);
    if (row === undefined || !isAllowed(row.record)) return false;
    rows.set(id, { ...row, record: { ...row.record, ...changes } });
    return true;
  };
  return {
    rows,
    async insert(key) {
      rows.set(key.record.id, key);
    },
    list: async () => [...rows.values()].map(({ record }) => record),
    find: async (id) => rows.get(id)?.record,
    findByHash: async (hash) => [...rows.values()].find((row) => row.hash === hash)?.record,
    async replace({ id, expiresAtMs, successor }) {
      const isFree = (record: KeyRecord): boolean => (record.revokedAtMs ?? record.replacedBy) === undefined;
      const changed = change(id, isFree, { expiresAtMs, replacedBy: successor.record.id });
      if (changed) rows.set(successor.record.id, successor);
      return changed;
    },
    revoke: async (id, atMs) => change(id, (record) => record.revokedAtMs === undefined, { revokedAtMs: atMs }),
    rename: async (id, name) => change(id, () => true, { name }),
  };
}

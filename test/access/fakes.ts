import {
  bytesOf,
  type FoundKey,
  type KeyOrder,
  type KeyPosition,
  type KeyRecord,
  type KeyStore,
  type NewKey,
  type Page,
  PAGE_BYTES,
} from "../../src/access/key-store.ts";
import { keyState } from "../../src/access/keys.ts";
import type { Clock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";

/** A clock that moves only by `advance`. */
export function fakeClock(): Clock & { advance(byMs: number): void } {
  let elapsedMs = 0;
  return {
    now: () => 1_700_000_000_000 + elapsedMs,
    monotonic: () => elapsedMs,
    after: () => {
      throw new Error("this clock has no timers");
    },
    advance: (byMs) => {
      elapsedMs += byMs;
    },
  };
}

/** One page of rows in memory, oldest first. */
export function pageOf<T extends { readonly createdAtMs: number; readonly id: string }>(
  rows: readonly T[],
  page: Page | undefined,
): T[] {
  const compare = (one: Pick<T, "createdAtMs" | "id">, other: Pick<T, "createdAtMs" | "id">): number =>
    one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : Number(one.id > other.id));
  const { after, limit } = page ?? { limit: Infinity };
  const sorted = rows.toSorted(compare);
  return sorted.filter((row) => after === undefined || compare(row, after as never) > 0).slice(0, limit);
}

/** What keys are sorted by. Keys in memory have spent nothing. */
const VALUES: Readonly<Record<KeyOrder, (key: KeyRecord) => number | string | undefined>> = {
  created: ({ createdAtMs }) => createdAtMs,
  name: ({ name }) => name.toLowerCase(),
  lastUse: ({ lastUsedAtMs }) => lastUsedAtMs,
  spent: () => 0,
  budget: ({ limits }) => limits.monthlyBudgetMicroUsd,
  expiry: ({ expiresAtMs }) => expiresAtMs,
};

function compareValues(one: number | string, other: number | string): number {
  return one < other ? -1 : Number(one > other);
}

/** An in-memory KeyStore. */
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
    async insertFirst(key) {
      if (rows.size > 0) return false;
      rows.set(key.record.id, key);
      return true;
    },
    async list(accountIds, page) {
      const records = [...rows.values()].map(({ record }) => record);
      const listed = pageOf(
        records.filter((record) => accountIds?.includes(record.accountId) !== false),
        page,
      );
      if (page === undefined) return listed;
      let bytes = 0;
      return listed.filter((key) => {
        const before = bytes;
        bytes += bytesOf(key);
        return before < PAGE_BYTES;
      });
    },
    async listSorted({ order, isDescending, limit, after, accountIds, isWorking, words = [], modelId, nowMs }) {
      const place = (key: KeyRecord): KeyPosition => {
        const value = VALUES[order](key) ?? null;
        return { value, createdAtMs: key.createdAtMs, id: key.id };
      };
      const sign = isDescending ? -1 : 1;
      const compare = (one: KeyPosition, other: KeyPosition): number =>
        Number(one.value === null) - Number(other.value === null) ||
        sign *
          (compareValues(one.value ?? 0, other.value ?? 0) ||
            one.createdAtMs - other.createdAtMs ||
            compareValues(one.id, other.id));
      const found = [...rows.values()]
        .map(({ record }) => record)
        .filter(
          (key) =>
            accountIds?.includes(key.accountId) !== false &&
            (isWorking === undefined || (keyState(key, nowMs) === "active") === isWorking) &&
            words.every((word) => `${key.name} ${key.display}`.toLowerCase().includes(word.toLowerCase())) &&
            (modelId === undefined || key.models === "all" || key.models.includes(modelId)),
        )
        .toSorted((one, other) => compare(place(one), place(other)))
        .filter((key) => after === undefined || compare(place(key), after) > 0);
      const keys = found.slice(0, limit);
      const next = keys.length < found.length ? place(keys.at(-1)!) : undefined;
      return { keys, next, omittedUntilMs: undefined };
    },
    async countWorking(accountIds, nowMs) {
      const working = [...rows.values()].filter(({ record }) => keyState(record, nowMs) === "active");
      const counts = accountIds.map(
        (id) => [id, working.filter(({ record }) => record.accountId === id).length] as const,
      );
      return new Map(counts.filter(([, count]) => count > 0));
    },
    find: async (id) => rows.get(id)?.record,
    findWithHash: async (id) => {
      const row = rows.get(id);
      return row && { ...row, accountLimits: NO_LIMITS, accountDisabled: false };
    },
    names: async (ids) =>
      new Map(
        [...rows.values()]
          .filter(({ record }) => ids.includes(record.id))
          .map(({ record: { id, name, accountId } }) => [id, { name, accountId }]),
      ),
    findByHash: async (hash) => {
      const row = [...rows.values()].find((each) => each.hash === hash);
      return row && { record: row.record, accountLimits: NO_LIMITS, accountDisabled: false };
    },
    async findByHashes(hashes) {
      const found = await Promise.all(hashes.map(async (hash) => [hash, await this.findByHash(hash)] as const));
      return new Map(found.filter((each): each is [string, FoundKey] => each[1] !== undefined));
    },
    async replace(id, rotate) {
      const old = rows.get(id)?.record;
      if (old === undefined || (old.revokedAtMs ?? old.replacedBy) !== undefined) return false;
      const { expiresAtMs, successor } = rotate(old);
      rows.set(successor.record.id, successor);
      return change(id, () => true, { expiresAtMs, replacedBy: successor.record.id });
    },
    async transfer(id, { from, to }) {
      const key = rows.get(id)?.record;
      if (key?.accountId !== from) return false;
      for (const { record } of rows.values())
        if (record.keyFamilyId === key.keyFamilyId) change(record.id, () => true, { accountId: to });
      return true;
    },
    async workingPredecessors({ id }, nowMs) {
      const predecessors: KeyRecord[] = [];
      const before = (wanted: string) => [...rows.values()].find(({ record }) => record.replacedBy === wanted)?.record;
      for (let found = before(id); found !== undefined; found = before(found.id)) predecessors.push(found);
      return predecessors.filter((record) => keyState(record, nowMs) === "active").map((record) => record.id);
    },
    revoke: async (ids, atMs) =>
      ids.filter((id) => change(id, (record) => record.revokedAtMs === undefined, { revokedAtMs: atMs })),
    async update(id, changes, { limitedByAdministrator: expected, nowMs }) {
      const isFree = (record: KeyRecord): boolean =>
        (record.id === id ? record.revokedAtMs === undefined : keyState(record, nowMs) === "active") &&
        (expected ?? record.limitedByAdministrator) === record.limitedByAdministrator;
      const key = rows.get(id)?.record;
      if (key === undefined || !isFree(key)) return false;
      for (const { record } of rows.values())
        if (record.keyFamilyId === key.keyFamilyId) change(record.id, isFree, changes);
      return true;
    },
  };
}

import { type ExpressionBuilder, type InferResult, type Kysely, sql } from "kysely";
import {
  type KeyChanges as Changes,
  type FoundKey,
  type KeyRecord,
  type KeyStore,
  type NewKey,
  type Page,
  PAGE_BYTES,
} from "../../access/key-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { LedgerCompaction } from "../ledger/ledger-store.ts";
import type { KeyRow, Schema } from "../schema.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { fromLimitColumns, toLimitColumns } from "./account-rows.ts";
import { announced, type KeyChanges } from "./key-changes.ts";
import { createRoutingReader } from "./routing-rows.ts";
import { LIST_BYTES, sortedKeyIds } from "./sorted-keys.ts";
import { createStopReader } from "./stop-store.ts";
import { workingKeys } from "./working-keys.ts";

/** A key is made at most by this much before the one that it replaces, by the clocks of two processes. */
const MAX_CLOCK_DIFFERENCE_MS = 24 * 60 * 60 * 1000;

/** The KeyStore in the database. Every change is announced to key caches; the time of last use comes from the ledger. */
export function createKeyStore(database: Database, changes: KeyChanges, compaction: LedgerCompaction): KeyStore {
  const { query } = database;
  const toFoundKey = createFoundKeyReader();
  return {
    async insert(key) {
      // Announced as well: the key may have been cached as unknown a moment before.
      await changes.during(database, async (transaction) => {
        await transaction.insertInto("api_keys").values(toRow(key)).execute();
        return [key.hash];
      });
    },

    insertFirst(key) {
      return database.transaction(async (transaction) => {
        // Locks the account's row, so that simultaneous calls wait here.
        const account = transaction.selectFrom("accounts").select("id").where("id", "=", key.record.accountId);
        await lockRows(database, account).execute();
        const existing = await transaction.selectFrom("api_keys").select("id").limit(1).executeTakeFirst();
        if (existing !== undefined) return false;
        await transaction.insertInto("api_keys").values(toRow(key)).execute();
        return true;
      });
    },

    async list(accountIds, page) {
      await compaction.flushed();
      let rows = keysWithUse(database).orderBy("created_at_ms").orderBy("id");
      if (page !== undefined) rows = rows.where("id", "in", idsOf(database, accountIds, page));
      else if (accountIds !== undefined) rows = rows.where("account_id", "in", accountIds);
      return (await retryWhileBusy(() => rows.execute())).map(toRecord);
    },

    async listSorted(wanted) {
      await compaction.flushed();
      const { ids, ...page } = await sortedKeyIds(database, wanted);
      const found = new Map<string, KeyRecord>();
      for (const chunk of chunksOf(ids)) {
        const rows = keysWithUse(database).where("id", "in", chunk);
        for (const row of await retryWhileBusy(() => rows.execute())) found.set(row.id, toRecord(row));
      }
      return { keys: ids.flatMap((id) => found.get(id) ?? []), ...page };
    },

    async countWorking(accountIds, nowMs) {
      if (accountIds.length === 0) return new Map();
      const counts = sql<{ account_id: string; count: number }>`
        select account_id, count(*) as count from (${workingKeys({ accountIds }, nowMs)}) as keys group by account_id`;
      const { rows } = await retryWhileBusy(() => counts.execute(query));
      return new Map(rows.map(({ account_id, count }) => [account_id, count]));
    },

    async countRotations(keyFamilyId, sinceMs) {
      const count = query
        .selectFrom("api_keys")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("line_id", "=", keyFamilyId)
        .where("created_at_ms", ">", sinceMs);
      return (await retryWhileBusy(() => count.executeTakeFirstOrThrow())).count;
    },

    async find(id) {
      await compaction.flushed();
      const found = keysWithUse(database).where("id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toRecord(row);
    },

    async findWithHash(id) {
      const found = keysWithAccount(database).where("api_keys.id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && { ...toFoundKey(row), hash: row.hash };
    },

    async names(ids) {
      const names = new Map<string, { readonly name: string; readonly accountId: string }>();
      for (const chunk of chunksOf(ids)) {
        const found = query.selectFrom("api_keys").select(["id", "name", "account_id"]).where("id", "in", chunk);
        for (const { id, name, account_id } of await retryWhileBusy(() => found.execute()))
          names.set(id, { name, accountId: account_id });
      }
      return names;
    },

    async findByHash(hash) {
      const found = keysWithAccount(database).where("hash", "=", hash);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toFoundKey(row);
    },

    async findByHashes(hashes) {
      const keys = new Map<string, FoundKey>();
      for (const chunk of chunksOf(hashes)) {
        const found = keysWithAccount(database).where("hash", "in", chunk);
        for (const row of await retryWhileBusy(() => found.execute())) keys.set(row.hash, toFoundKey(row));
      }
      return keys;
    },

    replace(id, rotate) {
      return changes.during(database, async (transaction) => {
        const old = await findInFamily(transaction, id);
        if (old === undefined || (old.revoked_at_ms ?? old.replaced_by) !== null) return [];
        const { expiresAtMs, successor } = rotate(toRecord(old));
        const replaced = await transaction
          .updateTable("api_keys")
          .set({ expires_at_ms: expiresAtMs, replaced_by: successor.record.id })
          .where("id", "=", id)
          // A revocation takes no lock of the family.
          .where("revoked_at_ms", "is", null)
          .returning("id")
          .executeTakeFirst();
        if (replaced === undefined) return [];
        await transaction.insertInto("api_keys").values(toRow(successor)).execute();
        return [old.hash, successor.hash];
      });
    },

    transfer(id, { from, to, limitedByAdministrator: expected }) {
      return changes.during(database, async (transaction) => {
        const key = await findInFamily(transaction, id);
        if (key?.account_id !== from || (expected === false && key.limited_by_administrator === 1)) return [];
        const moved = await transaction
          .updateTable("api_keys")
          .set({ account_id: to })
          .where(isOfFamily(key.line_id ?? key.id))
          .returning("hash")
          .execute();
        return announced(moved.map(({ hash }) => hash));
      });
    },

    async workingPredecessors({ id, keyFamilyId, createdAtMs }, nowMs) {
      // A family may have thousands of keys, few of which work: only those are read, and the IDs of the successors of about its time.
      const untilMs = createdAtMs + MAX_CLOCK_DIFFERENCE_MS;
      const found = sql<{ id: string }>`
        with recursive later (id) as (
          select replaced_by from api_keys where id = ${id}
          union all
          select api_keys.replaced_by from later join api_keys on api_keys.id = later.id
          where api_keys.created_at_ms <= ${untilMs}
        )
        select id from (${workingKeys({ familyId: keyFamilyId }, nowMs)}) as working
        where replaced_by is not null and created_at_ms <= ${untilMs}
          and id <> ${id} and id not in (select id from later where id is not null)
        order by created_at_ms desc, id`;
      return (await retryWhileBusy(() => found.execute(query))).rows.map((row) => row.id);
    },

    async revoke(ids, atMs) {
      let revoked: readonly { readonly id: string; readonly hash: string }[] = [];
      await changes.during(database, async (transaction) => {
        revoked = await transaction
          .updateTable("api_keys")
          .set({ revoked_at_ms: atMs })
          .where("id", "in", ids)
          .where("revoked_at_ms", "is", null)
          .returning(["id", "hash"])
          .execute();
        return announced(revoked.map(({ hash }) => hash));
      });
      return revoked.map(({ id }) => id);
    },

    update(id, wanted, { limitedByAdministrator: expected, nowMs }) {
      return changes.during(database, async (transaction) => {
        const key = await findInFamily(transaction, id);
        const isFree = key?.revoked_at_ms === null;
        if (!isFree || (expected ?? key.limited_by_administrator === 1) !== (key.limited_by_administrator === 1))
          return [];
        const working = workingKeys({ familyId: key.line_id ?? key.id }, nowMs);
        const ids = sql<string>`(select id from (${working}) as working)`;
        let update = transaction
          .updateTable("api_keys")
          // Sets one column at least, because SQL has no update without.
          .set({ revoked_at_ms: null, ...toChangedColumns(wanted) })
          .where((each) => each.or([each("id", "=", id), each("id", "in", ids)]))
          .where("revoked_at_ms", "is", null);
        if (expected !== undefined) update = update.where("limited_by_administrator", "=", Number(expected));
        const updated = await update.returning("hash").execute();
        return announced(updated.map(({ hash }) => hash));
      });
    },
  };

  /** The row of a key, once no other transaction changes or adds keys of its family. */
  async function findInFamily(transaction: Kysely<Schema>, id: string): Promise<KeyRow | undefined> {
    const key = transaction.selectFrom("api_keys").selectAll().where("id", "=", id);
    const found = await key.executeTakeFirst();
    if (found === undefined) return undefined;
    const first = transaction
      .selectFrom("api_keys")
      .select("id")
      .where("id", "=", found.line_id ?? found.id);
    await lockRows(database, first).execute();
    return key.executeTakeFirst();
  }
}

/** The keys of a family, by the ID of its first key. */
function isOfFamily(id: string) {
  return (key: ExpressionBuilder<Schema, "api_keys">) => key.or([key("id", "=", id), key("line_id", "=", id)]);
}

/** IDs of the keys of a page. */
function idsOf({ query }: Pick<Database, "query">, accountIds: readonly string[] | undefined, { limit, after }: Page) {
  let keys = query
    .selectFrom("api_keys")
    .select(["id", "created_at_ms", LIST_BYTES.as("bytes")])
    .orderBy("created_at_ms")
    .orderBy("id")
    .limit(limit);
  if (accountIds !== undefined) keys = keys.where("account_id", "in", accountIds);
  if (after !== undefined)
    keys = keys
      .where("created_at_ms", ">=", after.createdAtMs)
      .where((key) => key.or([key("created_at_ms", ">", after.createdAtMs), key("id", ">", after.id)]));
  const bytesBefore = sql<number>`coalesce(sum(bytes) over (order by created_at_ms, id rows between unbounded preceding and 1 preceding), 0)`;
  const counted = query.selectFrom(keys.as("keys")).select("id").select(bytesBefore.as("bytes_before"));
  return query.selectFrom(counted.as("counted")).select("id").where("bytes_before", "<", PAGE_BYTES);
}

/** Keys, each with the end of its latest completion in the ledger. The key's own row has it only to the minute. */
export function keysWithUse({ query }: Pick<Database, "query">) {
  return query
    .selectFrom("api_keys")
    .selectAll()
    .select((expressions) =>
      expressions
        .selectFrom("completions")
        .select(({ fn }) => fn.max("ended_at_ms").as("latest"))
        .whereRef("key_id", "=", "api_keys.id")
        .as("latest_end_ms"),
    );
}

/** Keys, each with the limits, state and routing of its account. */
function keysWithAccount({ query }: Pick<Database, "query">) {
  return query
    .selectFrom("api_keys")
    .innerJoin("accounts", "accounts.id", "api_keys.account_id")
    .selectAll("api_keys")
    .select([
      "accounts.disabled_at_ms as account_disabled_at_ms",
      "accounts.requests_per_minute as account_requests_per_minute",
      "accounts.tokens_per_minute as account_tokens_per_minute",
      "accounts.concurrent_requests as account_concurrent_requests",
      "accounts.monthly_budget_micro_usd as account_monthly_budget_micro_usd",
      "accounts.credentials as account_credentials",
      "accounts.aliases as account_aliases",
      "accounts.stops as account_stops",
    ]);
}

type KeyWithAccount = InferResult<ReturnType<typeof keysWithAccount>>[number];

function createFoundKeyReader(): (row: KeyWithAccount) => FoundKey {
  const readRouting = createRoutingReader();
  const readStops = createStopReader();
  return (row) => ({
    record: toRecord(row),
    accountLimits: fromLimitColumns({
      requests_per_minute: row.account_requests_per_minute,
      tokens_per_minute: row.account_tokens_per_minute,
      concurrent_requests: row.account_concurrent_requests,
      monthly_budget_micro_usd: row.account_monthly_budget_micro_usd,
    }),
    accountDisabled: row.account_disabled_at_ms !== null,
    routing: readRouting(row.account_id, { credentials: row.account_credentials, aliases: row.account_aliases }),
    stops: readStops(row.account_id, row.account_stops),
  });
}

function toChangedColumns({
  name,
  models,
  capabilities,
  limits,
  attributionLimits,
  options,
  requiredLabels,
  tags,
  storesContent,
  limitedByAdministrator,
}: Changes): Partial<KeyRow> {
  return {
    ...(name !== undefined && { name }),
    ...(models !== undefined && { models: toModels(models) }),
    ...(capabilities !== undefined && { capabilities: JSON.stringify(capabilities) }),
    ...(limits !== undefined && toLimitColumns(limits)),
    ...(attributionLimits !== undefined && { attribution_limits: toNullable(attributionLimits) }),
    ...(limitedByAdministrator !== undefined && { limited_by_administrator: Number(limitedByAdministrator) }),
    ...(options !== undefined && { options: toOptions(options) }),
    ...(requiredLabels !== undefined && { required_labels: toNullable(requiredLabels) }),
    ...(tags !== undefined && { tags: toNullable(tags) }),
    ...(storesContent !== undefined && { stores_content: Number(storesContent) }),
  };
}

function toRow({ record, hash }: NewKey): KeyRow {
  return {
    id: record.id,
    account_id: record.accountId,
    name: record.name,
    hash,
    display: record.display,
    models: toModels(record.models),
    capabilities: JSON.stringify(record.capabilities),
    options: toOptions(record.options),
    required_labels: toNullable(record.requiredLabels),
    tags: toNullable(record.tags),
    stores_content: Number(record.storesContent),
    created_at_ms: record.createdAtMs,
    expires_at_ms: record.expiresAtMs ?? null,
    revoked_at_ms: record.revokedAtMs ?? null,
    replaced_by: record.replacedBy ?? null,
    last_used_at_ms: record.lastUsedAtMs ?? null,
    line_id: record.keyFamilyId === record.id ? null : record.keyFamilyId,
    limited_by_administrator: Number(record.limitedByAdministrator),
    attribution_limits: toNullable(record.attributionLimits ?? {}),
    ...toLimitColumns(record.limits),
  };
}

function toModels(models: KeyRecord["models"]): string | null {
  return models === "all" ? null : JSON.stringify(models);
}

function toOptions(options: KeyRecord["options"]): string | null {
  return options === "default" ? null : JSON.stringify(options);
}

/** As JSON; null for an empty list or object. */
function toNullable(value: object): string | null {
  return Object.keys(value).length === 0 ? null : JSON.stringify(value);
}

function toRecord(row: KeyRow & { readonly latest_end_ms?: number | null }): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    display: row.display,
    // All lists were written by `toRow`.
    models: row.models === null ? "all" : (JSON.parse(row.models) as string[]),
    capabilities: JSON.parse(row.capabilities) as KeyRecord["capabilities"],
    limits: fromLimitColumns(row),
    ...(row.attribution_limits !== null && {
      attributionLimits: JSON.parse(row.attribution_limits) as KeyRecord["attributionLimits"],
    }),
    limitedByAdministrator: row.limited_by_administrator === 1,
    options: row.options === null ? "default" : (JSON.parse(row.options) as KeyRecord["options"]),
    requiredLabels:
      row.required_labels === null ? {} : (JSON.parse(row.required_labels) as KeyRecord["requiredLabels"]),
    tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    storesContent: row.stores_content === 1,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    revokedAtMs: row.revoked_at_ms ?? undefined,
    replacedBy: row.replaced_by ?? undefined,
    lastUsedAtMs: Math.max(row.last_used_at_ms ?? 0, row.latest_end_ms ?? 0) || undefined,
    keyFamilyId: row.line_id ?? row.id,
  };
}

import type { Kysely } from "kysely";
import type { KeyRecord, KeyStore, NewKey } from "../access/key-store.ts";
import { NO_LIMITS } from "../core/principal.ts";
import { retryWhileBusy } from "./busy.ts";
import type { KeyRow, Schema } from "./schema.ts";

/** Keys in the database. */
export function createKeyStore(database: Kysely<Schema>): KeyStore {
  return {
    async insert(key) {
      await retryWhileBusy(() => database.insertInto("api_keys").values(toRow(key)).execute());
    },

    async list() {
      const query = database.selectFrom("api_keys").selectAll().orderBy("created_at_ms").orderBy("id");
      return (await retryWhileBusy(() => query.execute())).map(toRecord);
    },

    async find(id) {
      const query = database.selectFrom("api_keys").selectAll().where("id", "=", id);
      const row = await retryWhileBusy(() => query.executeTakeFirst());
      return row && toRecord(row);
    },

    async findByHash(hash) {
      const query = database.selectFrom("api_keys").selectAll().where("hash", "=", hash);
      const row = await retryWhileBusy(() => query.executeTakeFirst());
      return row && { record: toRecord(row), accountLimits: NO_LIMITS, accountDisabled: false };
    },

    replace({ id, expiresAtMs, successor }) {
      return retryWhileBusy(() =>
        database.transaction().execute(async (transaction) => {
          const old = await transaction
            .updateTable("api_keys")
            .set({ expires_at_ms: expiresAtMs, replaced_by: successor.record.id })
            .where("id", "=", id)
            .where("revoked_at_ms", "is", null)
            .where("replaced_by", "is", null)
            .executeTakeFirst();
          if (old.numUpdatedRows === 0n) return false;
          await transaction.insertInto("api_keys").values(toRow(successor)).execute();
          return true;
        }),
      );
    },

    async revoke(id, atMs) {
      const query = database
        .updateTable("api_keys")
        .set({ revoked_at_ms: atMs })
        .where("id", "=", id)
        .where("revoked_at_ms", "is", null);
      return (await retryWhileBusy(() => query.executeTakeFirst())).numUpdatedRows === 1n;
    },

    async update(id, { name }) {
      const query = database.updateTable("api_keys").set({ name: name! }).where("id", "=", id);
      return (await retryWhileBusy(() => query.executeTakeFirst())).numUpdatedRows === 1n;
    },
  };
}

function toRow({ record, hash }: NewKey): KeyRow {
  return {
    id: record.id,
    account_id: record.accountId,
    name: record.name,
    hash,
    display: record.display,
    models: record.models === "all" ? null : JSON.stringify(record.models),
    capabilities: JSON.stringify(record.capabilities),
    created_at_ms: record.createdAtMs,
    expires_at_ms: record.expiresAtMs ?? null,
    revoked_at_ms: record.revokedAtMs ?? null,
    replaced_by: record.replacedBy ?? null,
  };
}

function toRecord(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    display: row.display,
    // Both lists were written by `toRow`.
    models: row.models === null ? "all" : (JSON.parse(row.models) as string[]),
    capabilities: JSON.parse(row.capabilities) as KeyRecord["capabilities"],
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    revokedAtMs: row.revoked_at_ms ?? undefined,
    replacedBy: row.replaced_by ?? undefined,
    limits: NO_LIMITS,
    lastUsedAtMs: undefined,
  };
}

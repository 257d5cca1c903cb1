import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "../schema.ts";

/** Keys of accounts, or of a family by the ID of its first key. */
type KeysOf = { readonly accountIds: readonly string[] } | { readonly familyId: string };

/**
 * Query of the keys that are not revoked and have not expired by a time, by indexes that have no others: an account or a family may
 * have hundreds of thousands that have ended.
 */
export function workingKeys(of: KeysOf, atMs: number): RawBuilder<{ id: string; hash: string; account_id: string }> {
  const owners = "accountIds" in of ? sql`account_id in (${sql.join(of.accountIds)})` : sql`line_id = ${of.familyId}`;
  // The first key of a family has no `line_id`.
  const first =
    "accountIds" in of ? [] : [sql`id = ${of.familyId} and (expires_at_ms is null or expires_at_ms > ${atMs})`];
  const conditions = [sql`${owners} and expires_at_ms is null`, sql`${owners} and expires_at_ms > ${atMs}`, ...first];
  return sql.join(
    conditions.map(
      (condition) =>
        sql`select id, hash, account_id, created_at_ms, replaced_by from api_keys where revoked_at_ms is null and ${condition}`,
    ),
    sql` union all `,
  );
}

/** Clocks of processes differ by less: a key that has expired earlier works in none. */
const EXPIRED_MS = 24 * 60 * 60 * 1000;

/** Hashes of an account's keys that may still work, at most `limit`. */
export async function hashesOfAccount(
  transaction: Kysely<Schema>,
  accountId: string,
  limit: number,
): Promise<readonly string[]> {
  const keys = workingKeys({ accountIds: [accountId] }, Date.now() - EXPIRED_MS);
  const { rows } = await sql<{ hash: string }>`select hash from (${keys}) as keys limit ${sql.lit(limit)}`.execute(
    transaction,
  );
  return rows.map(({ hash }) => hash);
}

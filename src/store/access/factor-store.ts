import type { Kysely } from "kysely";
import type { FactorAdded, FactorSession, FactorStore, PasskeyRecord } from "../../access/factors/factor-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { PasskeyRow, Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";

/** The factors and reset links of the account store. */
export function createFactors(database: Database): FactorStore {
  const { query } = database;
  return { ...createPasskeys(database), ...createTotp(database), ...createResetLinks(query) };
}

type Passkeys = Pick<
  FactorStore,
  | "insertPasskey"
  | "findPasskey"
  | "listPasskeys"
  | "usePasskey"
  | "removePasskey"
  | "removePasskeys"
  | "spendChallenge"
>;

function createPasskeys(database: Database): Passkeys {
  const { query } = database;
  return {
    insertPasskey: (passkey, most, session) =>
      database.transaction(async (transaction): Promise<FactorAdded> => {
        const { accountId } = passkey;
        // Of two simultaneous insertions only one may be the last within the limit.
        const { passkeys, totp } = await lockFactors(database, transaction, accountId);
        if (passkeys >= most) return "taken";
        if (session !== undefined) {
          const isNext = session.setsUpFirst && (passkeys > 0 || totp);
          if (isNext || !(await lockSession(database, transaction, session))) return "session ended";
        }
        const insertion = transaction
          .insertInto("passkeys")
          .values(toPasskeyRow(passkey))
          .onConflict((conflict) => conflict.doNothing());
        if ((await insertion.executeTakeFirst()).numInsertedOrUpdatedRows !== 1n) return "taken";
        if (session !== undefined) {
          await markSession(transaction, session);
          const others = transaction.deleteFrom("sessions").where("account_id", "=", accountId);
          await others.where("second_factor", "is", null).execute();
        }
        return "done";
      }),

    async findPasskey(id) {
      const found = query.selectFrom("passkeys").selectAll().where("id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toPasskeyRecord(row);
    },

    async listPasskeys(accountId) {
      const own = query.selectFrom("passkeys").selectAll().where("account_id", "=", accountId);
      const rows = await retryWhileBusy(() => own.orderBy("created_at_ms").orderBy("id").execute());
      return rows.map(toPasskeyRecord);
    },

    async usePasskey({ id, counter: before }, { counter, atMs }) {
      const used = query
        .updateTable("passkeys")
        .set({ counter, used_at_ms: atMs })
        .where("id", "=", id)
        .where("counter", "=", before);
      return (await retryWhileBusy(() => used.executeTakeFirst())).numUpdatedRows === 1n;
    },

    removePasskey: (accountId, id, { keepsLast }) =>
      database.transaction(async (transaction) => {
        const { passkeys, totp } = await lockFactors(database, transaction, accountId);
        const own = transaction.selectFrom("passkeys").select("id").where("account_id", "=", accountId);
        if ((await own.where("id", "=", id).executeTakeFirst()) === undefined) return "unknown";
        if (keepsLast && passkeys === 1 && !totp) return "last";
        await transaction.deleteFrom("passkeys").where("account_id", "=", accountId).where("id", "=", id).execute();
        return "done";
      }),

    removePasskeys: (accountId) =>
      database.transaction(async (transaction) => {
        await lockFactors(database, transaction, accountId);
        return removePasskeys(transaction, accountId);
      }),

    async spendChallenge({ hash, expiresAtMs }, nowMs) {
      await retryWhileBusy(() => query.deleteFrom("passkey_challenges").where("expires_at_ms", "<=", nowMs).execute());
      const spent = query
        .insertInto("passkey_challenges")
        .values({ hash, expires_at_ms: expiresAtMs })
        .onConflict((conflict) => conflict.doNothing());
      return (await retryWhileBusy(() => spent.executeTakeFirst())).numInsertedOrUpdatedRows === 1n;
    },
  };
}

type Totp = Omit<FactorStore, keyof Passkeys | keyof ResetLinks>;

function createTotp(database: Database): Totp {
  const { query } = database;
  return {
    async findTotp(accountId) {
      const found = query.selectFrom("totp_secrets").selectAll().where("account_id", "=", accountId);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && { sealed: row.sealed, lastStep: row.last_step, createdAtMs: row.created_at_ms };
    },

    insertTotp: (accountId, { sealed, lastStep, createdAtMs, codeHashes }, session) =>
      database.transaction(async (transaction): Promise<FactorAdded> => {
        const { passkeys, totp } = await lockFactors(database, transaction, accountId);
        if (session !== undefined) {
          const isNext = session.setsUpFirst && (passkeys > 0 || totp);
          if (isNext || !(await lockSession(database, transaction, session))) return "session ended";
        }
        const insertion = transaction
          .insertInto("totp_secrets")
          .values({ account_id: accountId, sealed, last_step: lastStep, created_at_ms: createdAtMs })
          .onConflict((conflict) => conflict.doNothing());
        if ((await insertion.executeTakeFirst()).numInsertedOrUpdatedRows !== 1n) return "taken";
        await replaceCodes(transaction, accountId, codeHashes);
        if (session !== undefined) {
          await markSession(transaction, session);
          const others = transaction.deleteFrom("sessions").where("account_id", "=", accountId);
          await others.where("hash", "<>", session.hash).execute();
        }
        return "done";
      }),

    async useTotpStep(accountId, step) {
      const used = query
        .updateTable("totp_secrets")
        .set({ last_step: step })
        .where("account_id", "=", accountId)
        .where("last_step", "<", step);
      return (await retryWhileBusy(() => used.executeTakeFirst())).numUpdatedRows === 1n;
    },

    removeTotp: (accountId, { keepsLast }) =>
      database.transaction(async (transaction) => {
        const { passkeys, totp } = await lockFactors(database, transaction, accountId);
        if (!totp) return "unknown";
        if (keepsLast && passkeys === 0) return "last";
        await removeTotp(transaction, accountId);
        return "done";
      }),

    resealTotp: (seal) =>
      database.transaction(async (transaction) => {
        const rows = await transaction.selectFrom("totp_secrets").select(["account_id", "sealed"]).execute();
        let resealed = 0;
        for (const { account_id: accountId, sealed: before } of rows) {
          const sealed = seal(before, accountId);
          if (sealed === undefined) continue;
          const change = transaction.updateTable("totp_secrets").set({ sealed }).where("account_id", "=", accountId);
          await change.where("sealed", "=", before).execute();
          resealed += 1;
        }
        return { resealed, unreadable: rows.length - resealed };
      }),

    setRecoveryCodes: (accountId, hashes) =>
      database.transaction((transaction) => replaceCodes(transaction, accountId, hashes)),

    async countRecoveryCodes(accountId) {
      const own = query.selectFrom("recovery_codes").select("hash").where("account_id", "=", accountId);
      return (await retryWhileBusy(() => own.execute())).length;
    },

    async useRecoveryCode(accountId, hash) {
      const used = query.deleteFrom("recovery_codes").where("account_id", "=", accountId).where("hash", "=", hash);
      return (await retryWhileBusy(() => used.executeTakeFirst())).numDeletedRows === 1n;
    },

    removeFactors: (accountId) =>
      database.transaction(async (transaction) => {
        await lockFactors(database, transaction, accountId);
        const passkeys = await removePasskeys(transaction, accountId);
        return { passkeys, totp: await removeTotp(transaction, accountId) };
      }),
  };
}

/** Sessions end in the same transaction: one that is left could add a passkey again. */
async function removePasskeys(transaction: Kysely<Schema>, accountId: string): Promise<number> {
  const removed = transaction.deleteFrom("passkeys").where("account_id", "=", accountId);
  const { numDeletedRows } = await removed.executeTakeFirst();
  await transaction.deleteFrom("sessions").where("account_id", "=", accountId).execute();
  return Number(numDeletedRows);
}

/** Reads an account's factors; simultaneous changes of its factors wait. */
async function lockFactors(
  database: Database,
  transaction: Kysely<Schema>,
  accountId: string,
): Promise<{ readonly passkeys: number; readonly totp: boolean }> {
  const account = transaction.selectFrom("accounts").select("id").where("id", "=", accountId);
  await lockRows(database, account).execute();
  const passkeys = transaction.selectFrom("passkeys").select("id").where("account_id", "=", accountId);
  const totp = transaction.selectFrom("totp_secrets").select("account_id").where("account_id", "=", accountId);
  return {
    passkeys: (await passkeys.execute()).length,
    totp: (await totp.executeTakeFirst()) !== undefined,
  };
}

/** Whether the session has not ended; it cannot end during the transaction. */
async function lockSession(database: Database, transaction: Kysely<Schema>, { hash }: FactorSession): Promise<boolean> {
  const session = transaction.selectFrom("sessions").select("hash").where("hash", "=", hash);
  return (await lockRows(database, session).executeTakeFirst()) !== undefined;
}

async function markSession(transaction: Kysely<Schema>, { hash }: FactorSession): Promise<void> {
  await transaction.updateTable("sessions").set({ second_factor: 1 }).where("hash", "=", hash).execute();
}

async function removeTotp(connection: Kysely<Schema>, accountId: string): Promise<boolean> {
  await connection.deleteFrom("recovery_codes").where("account_id", "=", accountId).execute();
  const removed = connection.deleteFrom("totp_secrets").where("account_id", "=", accountId);
  return (await removed.executeTakeFirst()).numDeletedRows === 1n;
}

async function replaceCodes(connection: Kysely<Schema>, accountId: string, hashes: readonly string[]): Promise<void> {
  await connection.deleteFrom("recovery_codes").where("account_id", "=", accountId).execute();
  const rows = hashes.map((hash) => ({ account_id: accountId, hash }));
  if (rows.length > 0) await connection.insertInto("recovery_codes").values(rows).execute();
}

type ResetLinks = Pick<FactorStore, "insertResetLink" | "findResetLink" | "takeResetLink" | "removeResetLinks">;

function createResetLinks(query: Kysely<Schema>): ResetLinks {
  return {
    async insertResetLink({ hash, accountId, expiresAtMs }, nowMs) {
      const others = query
        .deleteFrom("password_reset_links")
        .where((is) => is.or([is("account_id", "=", accountId), is("expires_at_ms", "<=", nowMs)]));
      await retryWhileBusy(() => others.execute());
      const row = { hash, account_id: accountId, expires_at_ms: expiresAtMs };
      await retryWhileBusy(() => query.insertInto("password_reset_links").values(row).execute());
    },

    async findResetLink(hash, nowMs) {
      const found = query.selectFrom("password_reset_links").selectAll().where("hash", "=", hash);
      const row = await retryWhileBusy(() => found.where("expires_at_ms", ">", nowMs).executeTakeFirst());
      return row && { hash, accountId: row.account_id, expiresAtMs: row.expires_at_ms };
    },

    async takeResetLink(hash) {
      const taken = query.deleteFrom("password_reset_links").where("hash", "=", hash);
      return (await retryWhileBusy(() => taken.executeTakeFirst())).numDeletedRows === 1n;
    },

    async removeResetLinks(accountId) {
      const own = query.deleteFrom("password_reset_links").where("account_id", "=", accountId);
      await retryWhileBusy(() => own.execute());
    },
  };
}

function toPasskeyRow(passkey: PasskeyRecord): PasskeyRow {
  return {
    id: passkey.id,
    account_id: passkey.accountId,
    name: passkey.name,
    public_key: passkey.publicKey,
    counter: passkey.counter,
    transports: JSON.stringify(passkey.transports),
    created_at_ms: passkey.createdAtMs,
    used_at_ms: passkey.usedAtMs ?? null,
  };
}

function toPasskeyRecord(row: PasskeyRow): PasskeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    publicKey: row.public_key,
    counter: row.counter,
    transports: JSON.parse(row.transports) as string[],
    createdAtMs: row.created_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
  };
}

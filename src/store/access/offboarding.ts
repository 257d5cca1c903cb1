import type { Transaction } from "kysely";
import type { AccountStore, Offboarded, Offboarding } from "../../access/account-store.ts";
import { type Database, lockRows } from "../database.ts";
import type { Schema } from "../schema.ts";
import { roleOf } from "./account-rows.ts";
import { changeAccount } from "./change-account.ts";
import { announced, type KeyChanges } from "./key-changes.ts";

/** Rolls the transaction back. */
class Refused extends Error {
  readonly why: "denied" | "last owner" | "too many keys";

  constructor(why: Refused["why"]) {
    super(why);
    this.why = why;
  }
}

/** Ends what a person has, in one transaction, and announces the keys. */
export function createOffboarding(database: Database, changes: KeyChanges): Pick<AccountStore, "offboard"> {
  return {
    async offboard(id, offboarding) {
      let keyIds: readonly string[] = [];
      let teams: Offboarded["teams"] = [];
      let invitationIds: readonly string[] = [];
      let adminKeyIds: readonly string[] = [];
      let sessions = 0;
      try {
        await changes.during(database, async (transaction) => {
          await disable({ kind: database.kind, transaction: transaction as Transaction<Schema> }, id, offboarding);
          const ended = await transaction.deleteFrom("sessions").where("account_id", "=", id).executeTakeFirst();
          sessions = Number(ended.numDeletedRows);
          await transaction.deleteFrom("known_browsers").where("account_id", "=", id).execute();
          const unused = transaction
            .deleteFrom("invitations")
            .where("created_by", "=", id)
            .where("used_at_ms", "is", null);
          invitationIds = (await unused.returning("id").execute()).map((invitation) => invitation.id);
          const left = transaction.deleteFrom("team_members").where("account_id", "=", id);
          teams = (await left.returning(["team_id as teamId", "role"]).execute()) as Offboarded["teams"];
          const ofPrograms = transaction
            .updateTable("administration_keys")
            .set({ revoked_at_ms: offboarding.atMs })
            .where("account_id", "=", id)
            .where("revoked_at_ms", "is", null);
          adminKeyIds = (await ofPrograms.returning("id").execute()).map((key) => key.id);
          const keys = await endKeys(transaction as Transaction<Schema>, id, offboarding);
          keyIds = keys.map((key) => key.id);
          return announced(keys.map(({ hash }) => hash));
        });
      } catch (error) {
        if (error instanceof Refused) return error.why;
        throw error;
      }
      return { keyIds, teams, invitationIds, adminKeyIds, sessions };
    },
  };
}

/** Throws Refused for the last owner, and when a precondition does not hold. */
async function disable(
  { kind, transaction }: Pick<Database, "kind"> & { readonly transaction: Transaction<Schema> },
  id: string,
  { atMs, expected }: Offboarding,
): Promise<void> {
  // Owners who offboard each other wait here.
  const owners = transaction.selectFrom("accounts").select("id").where(roleOf("accounts"), "=", "owner").orderBy("id");
  await lockRows({ kind }, owners).execute();
  if (!(await changeAccount(transaction, id, { wanted: { disabledAtMs: atMs }, expected })))
    throw new Refused("denied");
  if (expected.role !== "owner") return;
  const left = owners.where("email", "is not", null).where("disabled_at_ms", "is", null).limit(1);
  if ((await left.executeTakeFirst()) === undefined) throw new Refused("last owner");
}

/** Revokes the keys of an account, or transfers those that work, with their families; returns them. */
async function endKeys(
  transaction: Transaction<Schema>,
  id: string,
  { keysTo, atMs, mostKeys }: Offboarding,
): Promise<readonly { readonly id: string; readonly hash: string }[]> {
  const working = transaction
    .selectFrom("api_keys")
    .where("revoked_at_ms", "is", null)
    .where((key) => key.or([key("expires_at_ms", "is", null), key("expires_at_ms", ">", atMs)]));
  const keys = await working.select(["id", "hash", "line_id"]).where("account_id", "=", id).execute();
  if (keysTo === undefined) {
    await transaction
      .updateTable("api_keys")
      .set({ revoked_at_ms: atMs })
      .where("account_id", "=", id)
      .where("revoked_at_ms", "is", null)
      .execute();
    return keys;
  }
  const owned = await working
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("account_id", "=", keysTo)
    .execute();
  if ((owned[0]?.count ?? 0) + keys.length > mostKeys) throw new Refused("too many keys");
  const families = [...new Set(keys.map((key) => key.line_id ?? key.id))];
  if (families.length > 0)
    await transaction
      .updateTable("api_keys")
      .set({ account_id: keysTo })
      .where("account_id", "=", id)
      .where((key) => key.or([key("id", "in", families), key("line_id", "in", families)]))
      .execute();
  return keys;
}

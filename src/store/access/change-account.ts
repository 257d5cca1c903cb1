import type { Kysely } from "kysely";
import type { AccountChanges, Expected } from "../../access/account-store.ts";
import type { Schema } from "../schema.ts";
import { roleOf, toChangedAccountColumns } from "./account-rows.ts";

/** Changes an account. False for an unknown account, and when a precondition of `expected` does not hold. */
export async function changeAccount(
  connection: Kysely<Schema>,
  id: string,
  { wanted, expected }: { readonly wanted: AccountChanges; readonly expected: Expected | undefined },
): Promise<boolean> {
  let update = connection
    .updateTable("accounts")
    // Sets the ID as well, because SQL has no update without columns.
    .set({ id, ...toChangedAccountColumns(wanted) })
    .where("id", "=", id);
  if (expected !== undefined && "passwordHash" in expected) {
    const { passwordHash } = expected;
    update = update.where("password_hash", passwordHash === undefined ? "is" : "=", passwordHash ?? null);
  }
  if (expected?.role !== undefined) update = update.where(roleOf("accounts"), "=", expected.role);
  const actor = expected?.actor;
  if (actor?.id === id) {
    // A condition on the account's own row: PostgreSQL checks it again when it has waited for another change.
    update = update.where(roleOf("accounts"), "in", actor.roles).where("disabled_at_ms", "is", null);
  } else if (actor !== undefined) {
    const enabled = connection
      .selectFrom("accounts as actors")
      .select("actors.id")
      .where("actors.id", "=", actor.id)
      .where(roleOf("actors"), "in", actor.roles)
      .where("actors.disabled_at_ms", "is", null);
    update = update.where((is) => is.exists(enabled));
  }
  return (await update.executeTakeFirst()).numUpdatedRows === 1n;
}

import { invalidField } from "../../core/failure.ts";
import type { AccountRecord } from "../account-store.ts";
import type { Actor } from "../accounts.ts";
import type { AccessContext } from "../context.ts";

/** Removes the factors of a person, who has lost them, and ends the sessions. Throws `invalid_request` for a team. */
export async function resetFactors(
  { store, log }: Pick<AccessContext, "store" | "log">,
  account: AccountRecord,
  actor: Actor,
): Promise<{ readonly passkeys: number; readonly totp: boolean }> {
  const { id } = account;
  if (account.kind !== "person")
    throw invalidField("id", `account ${id} is of a ${account.kind}, which does not sign in`);
  const removed = await store.removeFactors(id);
  await store.removeSessions(id);
  const details = { passkeys: String(removed.passkeys), totp: String(removed.totp) };
  await log.record({ action: "factors_reset", ...actor, accountId: id, details });
  return removed;
}

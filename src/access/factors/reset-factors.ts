import { Failure, invalidField } from "../../core/failure.ts";
import type { AccountRecord } from "../account-store.ts";
import type { Actor } from "../accounts.ts";
import type { AccessContext } from "../context.ts";
import { rolesThatMayChange } from "../role-changes.ts";

/**
 * Removes the factors of a person, who has lost them, and ends the sessions. Throws `invalid_request` for a team,
 * `permission_denied` when the actor's role allows less than the person's (an administrator cannot reset an owner's
 * factors).
 */
export async function resetFactors(
  { store, log }: Pick<AccessContext, "store" | "log">,
  account: AccountRecord,
  actor: Actor,
): Promise<{ readonly passkeys: number; readonly totp: boolean }> {
  const { id } = account;
  if (account.kind !== "person")
    throw invalidField("id", `account ${id} is of a ${account.kind}, which does not sign in`);
  const { roles, names } = await rolesThatMayChange(store, { before: account.role }, actor);
  const expected =
    actor.actorId === undefined ? undefined : { role: account.role, actor: { id: actor.actorId, roles } };
  // An update without changes, which checks that both roles are still as expected.
  if (!(await store.update(id, {}, expected)))
    throw new Failure("permission_denied", `The second factors of this account can be reset by these roles: ${names}.`);
  const removed = await store.removeFactors(id);
  const details = { passkeys: String(removed.passkeys), totp: String(removed.totp) };
  await log.record({ action: "factors_reset", ...actor, accountId: id, details });
  return removed;
}

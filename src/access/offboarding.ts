import { Failure, invalidField } from "../core/failure.ts";
import type { Offboarded } from "./account-store.ts";
import { type Actor, findAccount, lastOwner } from "./accounts.ts";
import type { AccessContext } from "./context.ts";
import { requireReceiver } from "./key-transfer.ts";
import { MAX_WORKING_KEYS } from "./keys.ts";
import { rolesWith } from "./permissions.ts";

/**
 * Ends what a person has, in one transaction: disables the account, ends its sessions, revokes its unused invitations, removes it from its
 * teams, and transfers its keys to another account or revokes them. Its usage stays with it. Throws `invalid_request` for an
 * unknown account, for a team, for the last owner, and for an account that cannot receive the keys; `permission_denied` when an
 * administrator offboards an owner.
 */
export async function offboard(
  { store, clock, log }: Pick<AccessContext, "store" | "clock" | "log">,
  {
    id,
    keysTo,
    actor,
  }: {
    readonly id: string;
    /** Undefined: the keys are revoked. */
    readonly keysTo: string | undefined;
    readonly actor: Actor;
  },
): Promise<Offboarded> {
  const { role, kind } = await findAccount(store, id);
  if (kind !== "person")
    throw invalidField("id", "is no person's account; disable it, and transfer its keys one by one");
  if (keysTo !== undefined) await requireReceiver({ store }, { from: id, to: keysTo, field: "transfer_keys_to" });
  const roles = rolesWith(role === "owner" ? "owners.write" : "accounts.write");
  const done = await store.offboard(id, {
    keysTo,
    atMs: clock.now(),
    mostKeys: MAX_WORKING_KEYS,
    expected: { role, ...(actor.actorId !== undefined && { actor: { id: actor.actorId, roles } }) },
  });
  if (done === "denied")
    throw new Failure("permission_denied", `This account can be offboarded by these roles: ${roles.join(", ")}.`);
  if (done === "last owner") throw lastOwner();
  if (done === "too many keys")
    throw invalidField("transfer_keys_to", `would have more than ${MAX_WORKING_KEYS} active keys; revoke some first`);
  await log.record({
    type: "account_offboarded",
    accountId: id,
    ...actor,
    details: { keys: String(done.keyIds.length) },
  });
  for (const key_id of done.keyIds) {
    if (keysTo === undefined) await log.record({ type: "key_revoked", accountId: id, ...actor, details: { key_id } });
    else
      await log.record({
        type: "key_transferred",
        accountId: keysTo,
        ...actor,
        details: { key_id, from_account: id, to_account: keysTo },
      });
  }
  for (const teamId of done.teamIds)
    await log.record({ type: "member_removed", accountId: teamId, ...actor, details: { member: id } });
  return done;
}

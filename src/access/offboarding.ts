import { Failure, invalidField } from "../core/failure.ts";
import type { Offboarded } from "./account-store.ts";
import { type Actor, findAccount, lastOwner } from "./accounts.ts";
import { revokedAdminKeyEntry } from "./admin-keys.ts";
import type { NewEntry } from "./audit-log.ts";
import { memberEntry, revokedKeyEntry, transferredKeyEntries } from "./audit-fields.ts";
import type { AccessContext } from "./context.ts";
import { requireReceiver } from "./key-transfer.ts";
import { MAX_WORKING_KEYS } from "./keys.ts";
import { rolesThatMayChange } from "./role-changes.ts";

/**
 * Ends what a person has, in one transaction: disables the account, ends its sessions, revokes its unused invitations and
 * administration keys, removes it from its teams, and transfers its keys to another account or revokes them. Its usage stays
 * with it. Throws `invalid_request` for an unknown account, for a team, for the last owner, and for an account that cannot
 * receive the keys; `permission_denied` when the actor's role allows less than the account's (an administrator cannot
 * offboard an owner).
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
  const { role, kind, disabledAtMs } = await findAccount(store, id);
  if (kind !== "person")
    throw invalidField("id", "is no person's account; disable it, and transfer its keys one by one");
  if (keysTo !== undefined) await requireReceiver({ store }, { from: id, to: keysTo, field: "transfer_keys_to" });
  const { roles, names } = await rolesThatMayChange(store, { before: role }, actor);
  const atMs = clock.now();
  const done = await store.offboard(id, {
    keysTo,
    atMs,
    mostKeys: MAX_WORKING_KEYS,
    expected: { role, ...(actor.actorId !== undefined && { actor: { id: actor.actorId, roles } }) },
  });
  if (done === "denied")
    throw new Failure("permission_denied", `This account can be offboarded by these roles: ${names}.`);
  if (done === "last owner") throw lastOwner();
  if (done === "too many keys")
    throw invalidField("transfer_keys_to", `would have more than ${MAX_WORKING_KEYS} active keys; revoke some first`);
  for (const entry of entriesOf(done, { id, keysTo, atMs, wasDisabled: disabledAtMs !== undefined }))
    await log.record({ ...entry, ...actor });
  return done;
}

/** The entries of the audit log: of the account, and of everything that has ended with it. */
function entriesOf(
  { keyIds, teams, invitationIds, adminKeyIds, sessions }: Offboarded,
  {
    id,
    keysTo,
    atMs,
    wasDisabled,
  }: {
    readonly id: string;
    readonly keysTo: string | undefined;
    readonly atMs: number;
    readonly wasDisabled: boolean;
  },
): NewEntry[] {
  return [
    {
      action: "account_offboarded",
      accountId: id,
      before: { disabled: wasDisabled, active_keys: keyIds.length, teams: teams.length, sessions },
      after: { disabled: true, active_keys: 0, teams: 0, sessions: 0 },
    },
    ...keyIds.flatMap((keyId) =>
      keysTo === undefined
        ? [revokedKeyEntry({ id: keyId, accountId: id }, atMs)]
        : transferredKeyEntries(keyId, { from: id, to: keysTo, concerned: [keysTo] }),
    ),
    ...adminKeyIds.map((keyId) => revokedAdminKeyEntry({ id: keyId, accountId: id }, atMs)),
    ...teams.map(({ teamId, role }) => memberEntry(teamId, { member: id, before: role })),
    ...invitationIds.map((invitationId) => ({
      action: "invitation_revoked" as const,
      object: { kind: "invitation" as const, id: invitationId },
    })),
  ];
}

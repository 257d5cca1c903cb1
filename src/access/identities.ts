import { invalidField } from "../core/failure.ts";
import type { AccountRecord, Identity } from "./account-store.ts";
import type { AccessContext } from "./context.ts";

type Links = Pick<AccessContext, "store" | "clock" | "log">;

/**
 * Links an account to a person of an OpenID provider, in place of another of the same issuer, and ends all other ways to sign in. Throws
 * `invalid_request` when the person has another account, or when the account cannot sign in.
 */
export async function linkIdentity(context: Links, account: AccountRecord, identity: Identity): Promise<void> {
  const { store, clock, log } = context;
  const { issuer, subject } = identity;
  if (account.email === undefined)
    throw invalidField("id", `account ${account.id} has no e-mail address, so sign-in is not possible`);
  const owner = await store.findByIdentity(identity);
  if (owner?.id === account.id) return;
  if (owner !== undefined) throw invalidField("subject", `is linked to the account ${owner.id} already`);
  await unlinkIdentity(context, account, issuer);
  if (!(await store.link(account.id, { issuer, subject, linkedAtMs: clock.now() })))
    throw invalidField("subject", "has been linked to another account meanwhile");
  await log.record({ action: "identity_linked", accountId: account.id, after: { issuer, subject } });
}

/** Removes an account's identity of an issuer, and ends its sessions. False without one. */
export async function unlinkIdentity({ store, log }: Links, { id }: AccountRecord, issuer: string): Promise<boolean> {
  if (!(await store.unlink(id, issuer))) return false;
  await store.removeSessions(id);
  await log.record({ action: "identity_removed", accountId: id, before: { issuer } });
  return true;
}

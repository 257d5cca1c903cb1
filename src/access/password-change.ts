import { invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import type { AccessContext, Origin } from "./context.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import { startSession, type SignedIn, type StartedSession } from "./sessions.ts";
import { checkOwnProof, type UsedPasskey } from "./sign-in.ts";

export interface PasswordChange {
  readonly signedIn: SignedIn;
  readonly current: string;
  /** In place of the current password. */
  readonly passkey?: UsedPasskey | undefined;
  readonly next: string;
}

/**
 * Changes the password of a signed-in account: all its sessions end, its browsers become unknown, and a new session begins.
 * Throws `invalid_request` for a wrong current password or an invalid new one, `rate_limited` after too many attempts.
 */
export async function changePassword(
  context: AccessContext,
  { signedIn, current, passkey, next }: PasswordChange,
  origin: Origin,
): Promise<StartedSession> {
  const { account } = signedIn;
  const password = toPassword(next, "new_password");
  checkPassword(password, account.email ?? "", "new_password");
  const old = toPassword(current, "current_password");
  await checkOwnProof(context, { signedIn, password: old, passkey, field: "current_password" }, origin);
  if (passkey === undefined && password === old)
    throw invalidField("new_password", "must differ from the current password");
  const changed = await setPassword(context, account, { password, replaces: account.passwordHash });
  // Changed meanwhile, for example by an owner who locks an intruder out.
  if (changed === undefined) throw invalidField("current_password", "wrong password");
  const { id } = account;
  const { network, browser: client } = origin;
  await context.log.record({ action: "password_changed", actorId: id, accountId: id, network, client });
  const { method, secondFactor } = signedIn.session;
  const proven = passkey === undefined ? secondFactor : true;
  return startSession(context, changed, { ...origin, method, secondFactor: proven });
}

/**
 * Sets a new password for an account whose password was lost: ends its sessions, makes its browsers unknown and clears its
 * throttle.
 */
export async function resetPassword(context: AccessContext, account: AccountRecord, text: string): Promise<void> {
  if (account.email === undefined)
    throw invalidField("id", `account ${account.id} has no e-mail address, so sign-in is not possible`);
  const password = toPassword(text);
  checkPassword(password, account.email);
  await setPassword(context, account, { password });
  await context.throttle.forget(account.email);
  await context.log.record({ action: "password_reset", accountId: account.id });
}

/**
 * Removes links for a new password, and sessions after the change: a simultaneous sign-in with the old password ends its own session (see `confirm`). Undefined,
 * without effect, when `replaces` is given and is no longer the hash of the account's password.
 */
export async function setPassword(
  context: AccessContext,
  account: AccountRecord,
  { password, replaces }: { readonly password: string; readonly replaces?: string | undefined },
): Promise<AccountRecord | undefined> {
  const passwordHash = await context.passwords.hash(password, { known: account.id });
  const expected = replaces === undefined ? undefined : { passwordHash: replaces };
  if (!(await context.store.update(account.id, { passwordHash }, expected))) return undefined;
  await context.store.removeResetLinks(account.id);
  await context.store.removeSessions(account.id);
  await context.store.removeBrowsers(account.id);
  return { ...account, passwordHash };
}

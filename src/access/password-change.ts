import { invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import type { AccessContext, Origin } from "./context.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import { startSession, type SignedIn, type StartedSession } from "./sessions.ts";
import { checkOwnPassword } from "./sign-in.ts";

export interface PasswordChange {
  readonly signedIn: SignedIn;
  readonly current: string;
  readonly next: string;
}

/**
 * Changes the password of somebody who is signed in: every session of the account ends, its browsers
 * are unknown again, and a new session begins. Throws
 * `invalid_request` for a wrong current password and for a new one that may not be, `rate_limited` after too many.
 */
export async function changePassword(
  context: AccessContext,
  { signedIn, current, next }: PasswordChange,
  origin: Origin,
): Promise<StartedSession> {
  const { account } = signedIn;
  const password = toPassword(next, "new_password");
  checkPassword(password, account.email ?? "", "new_password");
  const old = toPassword(current, "current_password");
  await checkOwnPassword(context, { signedIn, password: old, field: "current_password" }, origin);
  if (password === old) throw invalidField("new_password", "must differ from the current password");
  const changed = await setPassword(context, account, password);
  const { id } = account;
  await context.log.record({ type: "password_changed", actorId: id, accountId: id, network: origin.network });
  return startSession(context, changed, origin);
}

/**
 * Gives an account a new password, for whoever lost it: its sessions end, its browsers
 * are unknown again and its throttle is forgotten.
 */
export async function resetPassword(context: AccessContext, account: AccountRecord, text: string): Promise<void> {
  if (account.email === undefined)
    throw invalidField("id", `account ${account.id} has no e-mail address, so sign-in is not possible`);
  const password = toPassword(text);
  checkPassword(password, account.email);
  await setPassword(context, account, password);
  await context.throttle.forget(account.email);
  await context.log.record({ type: "password_reset", accountId: account.id });
}

/** Sessions end after the change: one that begins in between with the old password takes itself back. */
async function setPassword(context: AccessContext, account: AccountRecord, password: string): Promise<AccountRecord> {
  const passwordHash = await context.passwords.hash(password, "known");
  await context.store.update(account.id, { passwordHash });
  await context.store.removeSessions(account.id);
  await context.store.removeBrowsers(account.id);
  return { ...account, passwordHash };
}

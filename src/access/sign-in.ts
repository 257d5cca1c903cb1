import { Failure, invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import { hashEmail, toEmail } from "./address.ts";
import type { AccessContext, Origin } from "./context.ts";
import { recognizeBrowser } from "./known-browsers.ts";
import { toPassword } from "./password-rules.ts";
import type { SecurityEventType } from "./security-log.ts";
import type { Guesser } from "./throttle.ts";
import { type SignedIn, startSession, type StartedSession } from "./sessions.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/**
 * Starts a session. Throws one and the same `unauthenticated` Failure, after the same work, for an unknown address, a wrong
 * password and a disabled account; `rate_limited` after too many failures, for unknown addresses too; `invalid_request`
 * for what cannot be an address or a password at all. A browser in which the account has signed in before is throttled by
 * itself, whatever others have guessed.
 */
export async function signIn(
  context: AccessContext,
  credentials: Credentials,
  origin: Origin,
): Promise<StartedSession> {
  const { network } = origin;
  const email = toEmail(credentials.email);
  const password = toPassword(credentials.password);
  const account = await context.store.findByEmail(email);
  const { hash, accountIds } = await recognizeBrowser(context, origin.browserToken);
  const isKnown = hash !== undefined && account !== undefined && accountIds.includes(account.id);
  const guesser: Guesser = isKnown ? { kind: "browser", hash } : { kind: "unknown", network };
  // An unknown browser that finds the queue full leaves nothing behind in the database.
  if (!isKnown) context.passwords.requireRoom();
  const attempt = await context.throttle.attempt(email, guesser, account !== undefined);
  const expected = attempt.counts ? account?.passwordHash : undefined;
  const verdict = await context.passwords.verify(password, expected, isKnown ? "known" : "unknown");
  if (account === undefined || !verdict.matches || account.disabledAtMs !== undefined) {
    const details = { email_hash: hashEmail(email) };
    // Of a flood with unknown addresses only the beginning is worth an event.
    if (account !== undefined || attempt.refusal === undefined)
      await context.log.record({ type: "sign_in_failed", accountId: account?.id, network, details });
    throw attempt.refusal ?? refused();
  }
  await attempt.succeeded();
  const started = await startSession(context, account, origin);
  await confirm(context, started, password);
  // What cannot be done now is done at the next sign-in.
  if (verdict.outdated) await rehash(context, account, password).catch(() => undefined);
  await context.log.record({ type: "signed_in", actorId: account.id, accountId: account.id, network });
  return started;
}

/**
 * Takes the password of somebody who is signed in once more, so that sensitive acts are allowed for a while. Throws
 * `invalid_request` for a wrong one, `rate_limited` after too many.
 */
export async function reauthenticate(
  context: AccessContext,
  { signedIn, password }: { readonly signedIn: SignedIn; readonly password: string },
  origin: Origin,
): Promise<SignedIn> {
  await checkOwnPassword(context, { signedIn, password: toPassword(password), field: "password" }, origin);
  const authenticatedAtMs = context.clock.now();
  await context.store.touchSession(signedIn.session.hash, { authenticatedAtMs });
  await recordOwn(context, { signedIn, type: "reauthenticated" }, origin);
  return { ...signedIn, session: { ...signedIn.session, authenticatedAtMs } };
}

/** The password of somebody who is signed in, and the request's field that it came in. */
export interface OwnPassword {
  readonly signedIn: SignedIn;
  readonly password: string;
  readonly field: string;
}

/**
 * Checks a password with a throttle of the session's own: whatever others guess, its owner can give it. Throws `invalid_request` for a wrong one: `unauthenticated` would say
 * that the session is over.
 */
export async function checkOwnPassword(
  context: AccessContext,
  { signedIn, password, field }: OwnPassword,
  origin: Origin,
): Promise<void> {
  const { email = "", passwordHash } = signedIn.account;
  const attempt = await context.throttle.attempt(email, { kind: "session", hash: signedIn.session.hash }, true);
  const { matches } = await context.passwords.verify(password, passwordHash, "known");
  if (!matches) {
    await recordOwn(context, { signedIn, type: "reauthentication_failed" }, origin);
    throw invalidField(field, "wrong password");
  }
  await attempt.succeeded();
}

function recordOwn(
  { log }: AccessContext,
  { signedIn, type }: { readonly signedIn: SignedIn; readonly type: SecurityEventType },
  { network }: Origin,
): Promise<void> {
  const { id } = signedIn.account;
  return log.record({ type, actorId: id, accountId: id, network });
}

function refused(): Failure {
  return new Failure("unauthenticated", "The e-mail address or the password is wrong.");
}

/** Makes the hash anew at today's cost, unless the password has been changed meanwhile. */
async function rehash({ store, passwords }: AccessContext, account: AccountRecord, password: string): Promise<void> {
  const { passwordHash } = account;
  await store.update(account.id, { passwordHash: await passwords.hash(password, "known") }, { passwordHash });
}

/**
 * Takes the session back when its account was disabled, or got another password, while the old one was being checked:
 * whoever ended the account's sessions meanwhile did not see this one.
 */
async function confirm(context: AccessContext, started: StartedSession, password: string): Promise<void> {
  const { store, passwords } = context;
  const { session, account } = started;
  const current = await store.find(account.id);
  const isSame = current?.passwordHash === account.passwordHash;
  const matches = isSame || (await passwords.verify(password, current?.passwordHash, "known")).matches;
  if (matches && current !== undefined && current.disabledAtMs === undefined) return;
  await store.removeSession(session.hash);
  throw refused();
}

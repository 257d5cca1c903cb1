import { Failure, invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import { hashEmail, toEmail } from "./address.ts";
import type { AuditAction } from "./audit-log.ts";
import type { AccessContext, Origin } from "./context.ts";
import { recognizeBrowser, type Recognized } from "./known-browsers.ts";
import { toPassword } from "./password-rules.ts";
import { requirePasswordSignIn } from "./sign-in-rules.ts";
import type { Attempt, Guesser } from "./throttle.ts";
import { type SignedIn, startSession, type StartedSession } from "./sessions.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/**
 * Starts a session. Throws the same `unauthenticated` Failure, after the same work, for an unknown address, a wrong password
 * and a disabled account; `rate_limited` after too many failures, also for unknown addresses; `invalid_request` for a
 * malformed address or password; `permission_denied` for an address that signs in at the provider; `overloaded` when its network's requests wait already. A browser in which the account has signed
 * in before has its own throttle and its own turns, whatever others have guessed.
 */
export async function signIn(
  context: AccessContext,
  credentials: Credentials,
  origin: Origin,
): Promise<StartedSession> {
  const { network, browser: client } = origin;
  const email = toEmail(credentials.email);
  requirePasswordSignIn(context.signIn, email);
  const password = toPassword(credentials.password);
  const browser = await recognizeBrowser(context, origin.browserToken);
  // Only a browser that was found has turns of its own: anybody can make up tokens.
  const turn = browser.accountIds.length > 0 ? `browser:${browser.hash}` : network;
  const { account, isKnown, attempt } = await context.turns.take(turn, () =>
    begin(context, email, { network, browser }),
  );
  const expected = attempt.counts ? account?.passwordHash : undefined;
  const verdict = await context.passwords.verify(password, expected, isKnown ? "known" : { network });
  if (account === undefined || !verdict.matches || account.disabledAtMs !== undefined) {
    const details = { email_hash: hashEmail(email) };
    // Attempts with unknown addresses are recorded only until the throttle refuses.
    if (account !== undefined || attempt.refusal === undefined)
      await context.log.record({ action: "sign_in_failed", accountId: account?.id, network, client, details });
    throw attempt.refusal ?? refused();
  }
  await attempt.succeeded();
  const started = await startSession(context, account, origin);
  await confirm(context, started, password);
  // A failed rehash is repeated at the next sign-in.
  if (verdict.outdated) await rehash(context, account, password).catch(() => undefined);
  await context.log.record({ action: "signed_in", actorId: account.id, accountId: account.id, network, client });
  return started;
}

interface Begun {
  readonly account: AccountRecord | undefined;
  /** Whether the account has signed in with this browser. */
  readonly isKnown: boolean;
  readonly attempt: Attempt;
}

/** Finds the account and counts the attempt. */
async function begin(
  context: AccessContext,
  email: string,
  { network, browser: { hash, accountIds } }: { readonly network: string | undefined; readonly browser: Recognized },
): Promise<Begun> {
  const account = await context.store.findByEmail(email);
  const isKnown = hash !== undefined && account !== undefined && accountIds.includes(account.id);
  const guesser: Guesser = isKnown ? { kind: "browser", hash } : { kind: "unknown", network };
  // An unknown browser that meets a full queue writes nothing to the database.
  if (!isKnown) context.passwords.requireRoom(network);
  const attempt = await context.throttle.attempt(email, guesser, account !== undefined);
  return { account, isKnown, attempt };
}

/**
 * Confirms the password of a signed-in account, which allows sensitive actions for a while. Throws `invalid_request` for a
 * wrong password, `rate_limited` after too many.
 */
export async function reauthenticate(
  context: AccessContext,
  { signedIn, password }: { readonly signedIn: SignedIn; readonly password: string },
  origin: Origin,
): Promise<SignedIn> {
  await checkOwnPassword(context, { signedIn, password: toPassword(password), field: "password" }, origin);
  const authenticatedAtMs = context.clock.now();
  await context.store.touchSession(signedIn.session.hash, { authenticatedAtMs });
  await recordOwn(context, { signedIn, action: "reauthenticated" }, origin);
  return { ...signedIn, session: { ...signedIn.session, authenticatedAtMs } };
}

/** A password of a signed-in account, and the request's field that contains it. */
export interface OwnPassword {
  readonly signedIn: SignedIn;
  readonly password: string;
  readonly field: string;
}

/**
 * Checks a password with the session's own throttle, so that guesses elsewhere do not block its owner. Throws
 * `invalid_request` for a wrong one, because `unauthenticated` would mean that the session has ended.
 */
export async function checkOwnPassword(
  context: AccessContext,
  { signedIn, password, field }: OwnPassword,
  origin: Origin,
): Promise<void> {
  const { email = "", passwordHash } = signedIn.account;
  requirePasswordSignIn(context.signIn, email);
  const attempt = await context.throttle.attempt(email, { kind: "session", hash: signedIn.session.hash }, true);
  const { matches } = await context.passwords.verify(password, passwordHash, "known");
  if (!matches) {
    await recordOwn(context, { signedIn, action: "reauthentication_failed" }, origin);
    throw invalidField(field, "wrong password");
  }
  await attempt.succeeded();
}

function recordOwn(
  { log }: AccessContext,
  { signedIn, action }: { readonly signedIn: SignedIn; readonly action: AuditAction },
  { network, browser: client }: Origin,
): Promise<void> {
  const { id } = signedIn.account;
  return log.record({ action, actorId: id, accountId: id, network, client });
}

function refused(): Failure {
  return new Failure("unauthenticated", "The e-mail address or the password is wrong.");
}

/** Hashes the password again at the current cost, unless it has been changed meanwhile. */
async function rehash({ store, passwords }: AccessContext, account: AccountRecord, password: string): Promise<void> {
  const { passwordHash } = account;
  await store.update(account.id, { passwordHash: await passwords.hash(password, "known") }, { passwordHash });
}

/**
 * Ends the new session again when the account was disabled, or its password changed, while the old password was being
 * checked: whoever removed the account's sessions then missed this one.
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

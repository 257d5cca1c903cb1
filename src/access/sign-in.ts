import { Failure, invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import { hashEmail, toEmail } from "./address.ts";
import type { AuditAction } from "./audit-log.ts";
import type { AccessContext, Origin } from "./context.ts";
import { type PasskeySite, requireSite, verifyPasskey } from "./factors/passkeys.ts";
import { checkSecondFactor } from "./factors/second-factor.ts";
import { placeOf, recognizeBrowser, type Recognized } from "./known-browsers.ts";
import { toPassword } from "./password-rules.ts";
import { requirePasswordSignIn } from "./sign-in-rules.ts";
import type { Attempt, Guesser } from "./throttle.ts";
import { hasFactor, isSecondFactorDue, type SignedIn, startSession, type StartedSession } from "./sessions.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
  /** Code of an authenticator app, or a recovery code; default: none. */
  readonly code?: string;
}

/**
 * Starts a session. A wrong code counts as a wrong password. Throws the same `unauthenticated` Failure, after the same work, for an unknown address, a wrong password
 * and a disabled account; `rate_limited` after too many failures, also for unknown addresses; `invalid_request` for a
 * malformed address or password; what `checkSecondFactor` throws; `permission_denied` for an address that signs in at the provider; `overloaded` when its network's requests wait already. A browser in which the account has signed
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
  const { account, isKnown, attempt } = await context.signInQueue.take(placeOf(browser, network).turn, () =>
    begin(context, email, { network, browser }),
  );
  const expected = attempt.counts ? account?.passwordHash : undefined;
  const verdict = await context.passwords.verify(
    password,
    expected,
    isKnown && account !== undefined ? { known: account.id } : { network },
  );
  if (account === undefined || !verdict.matches || account.disabledAtMs !== undefined) {
    const details = { email_hash: hashEmail(email) };
    // Attempts with unknown addresses are recorded only until the throttle refuses.
    if (account !== undefined || attempt.refusal === undefined)
      await context.log.record({ action: "sign_in_failed", accountId: account?.id, network, client, details });
    throw attempt.refusal ?? refused();
  }
  const secondFactor = await checkSecondFactor(context, { account, code: credentials.code ?? "", attempt }, origin);
  await attempt.succeeded();
  const started = await startSession(context, account, { ...origin, ...(secondFactor && { secondFactor }) });
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
 * Starts a session with a passkey, whose device has asked for a PIN or a biometric. Throws `unauthenticated` for one that is unknown
 * or not valid and for a disabled account, `permission_denied` for an address that signs in at the provider, `rate_limited` after too
 * many failures of the network, or of a known browser, and too many sign-ins of the account.
 */
export async function signInByPasskey(
  context: AccessContext,
  { response, site }: { readonly response: string; readonly site: PasskeySite },
  origin: Origin,
): Promise<StartedSession> {
  const { store, throttle, signInQueue, log } = context;
  const { network = "none", browser: client } = origin;
  const { turn, guesser } = placeOf(await recognizeBrowser(context, origin.browserToken), network);
  const attempt = await signInQueue.take(turn, () => throttle.enter("passkey", guesser));
  const use = { response, site, signedIn: undefined, field: "response_json" };
  const { passkey, isValid } = await verifyPasskey(context, use);
  const account = passkey && (await store.find(passkey.accountId));
  const facts = { network: origin.network, client, details: { method: "passkey" } };
  if (account === undefined || !isValid || account.disabledAtMs !== undefined) {
    await log.record({ action: "sign_in_failed", accountId: account?.id, ...facts });
    throw new Failure("unauthenticated", "This passkey is not known here, or could not be verified. Try again.");
  }
  requirePasswordSignIn(context.signIn, account.email ?? "");
  // What is refused here stays counted as a failure of the browser or network, which then waits before anything is written.
  await throttle.enterSignIn("passkey", account.id);
  await attempt.succeeded();
  const started = await startSession(context, account, { ...origin, method: "passkey", secondFactor: true });
  // The passkey was removed, or its account disabled, while the session began.
  const [current, kept] = [await store.find(account.id), await store.findPasskey(passkey!.id)];
  if (current === undefined || current.disabledAtMs !== undefined || kept === undefined) {
    await store.removeSession(started.session.hash);
    throw new Failure("unauthenticated", "This passkey was removed. Sign in in another way.");
  }
  await log.record({ action: "signed_in", actorId: account.id, accountId: account.id, ...facts });
  return started;
}

/** Proof of a signed-in person: a passkey, or else the password. */
export interface OwnProof {
  readonly signedIn: SignedIn;
  readonly password: string;
  readonly passkey?: UsedPasskey | undefined;
}

export interface UsedPasskey {
  /** `AuthenticationResponseJSON`. */
  readonly response: string;
  /** Where passkeys are valid; undefined where there are none. */
  readonly site: PasskeySite | undefined;
}

/**
 * Confirms the identity of the signed-in person, which allows sensitive actions for a while. Throws `invalid_request` for a
 * wrong proof, `rate_limited` after too many.
 */
export async function reauthenticate(context: AccessContext, proof: OwnProof, origin: Origin): Promise<SignedIn> {
  const { signedIn, passkey } = proof;
  await checkOwnProof(context, { ...proof, field: "password" }, origin);
  const changes = {
    authenticatedAtMs: context.clock.now(),
    ...(passkey !== undefined && { secondFactor: true as const }),
  };
  await context.store.touchSession(signedIn.session.hash, changes);
  await recordOwn(context, { ...proof, action: "reauthenticated" }, origin);
  return { ...signedIn, session: { ...signedIn.session, ...changes } };
}

/**
 * Checks a proof, whose password is in `field` of the request, with the session's own throttle, so that guesses elsewhere do not block its owner. Throws
 * `invalid_request` for a wrong one, because `unauthenticated` would mean that the session has ended.
 */
export async function checkOwnProof(
  context: AccessContext,
  { field, ...proof }: OwnProof & { readonly field: string },
  origin: Origin,
): Promise<void> {
  const { signedIn } = proof;
  const { id, email = "", passwordHash } = signedIn.account;
  requirePasswordSignIn(context.signIn, email);
  const password = toPassword(proof.password, field);
  const attempt = await context.throttle.attempt(email, { kind: "session", hash: signedIn.session.hash }, true);
  let wrong: Failure | undefined;
  if (proof.passkey !== undefined) {
    const { response, site } = proof.passkey;
    const use = { response, site: requireSite(site), signedIn, field: "passkey_json" };
    const { passkey, isValid } = await verifyPasskey(context, use);
    if (!isValid || passkey?.accountId !== id)
      wrong = invalidField("passkey_json", "is not one of your passkeys, or could not be verified");
  } else {
    const { matches } = await context.passwords.verify(password, passwordHash, { known: id });
    if (!matches) wrong = invalidField(field, "wrong password");
  }
  if (wrong !== undefined) {
    await recordOwn(context, { ...proof, action: "reauthentication_failed" }, origin);
    throw wrong;
  }
  await attempt.succeeded();
}

function recordOwn(
  { log }: AccessContext,
  { signedIn, passkey, action }: OwnProof & { readonly action: AuditAction },
  { network, browser: client }: Origin,
): Promise<void> {
  const { id } = signedIn.account;
  const details = passkey === undefined ? {} : { method: "passkey" };
  return log.record({ action, actorId: id, accountId: id, network, client, details });
}

function refused(): Failure {
  return new Failure("unauthenticated", "The e-mail address or the password is wrong.");
}

/** Hashes the password again at the current cost, unless it has been changed meanwhile. */
async function rehash({ store, passwords }: AccessContext, account: AccountRecord, password: string): Promise<void> {
  const { passwordHash } = account;
  await store.update(
    account.id,
    { passwordHash: await passwords.hash(password, { known: account.id }) },
    { passwordHash },
  );
}

/**
 * Ends the new session again when the account was disabled, its password changed, or a factor set up that the sign-in would have needed, while
 * the old password was being checked: the removal of the account's sessions then missed this one.
 */
async function confirm(context: AccessContext, started: StartedSession, password: string): Promise<void> {
  const { store, passwords } = context;
  const { session, account } = started;
  const current = await store.find(account.id);
  const isSame = current?.passwordHash === account.passwordHash;
  const matches = isSame || (await passwords.verify(password, current?.passwordHash, { known: account.id })).matches;
  const lacksFactor =
    session.secondFactor === undefined &&
    ((await store.findTotp(account.id)) !== undefined ||
      (isSecondFactorDue(started, context.signIn) && (await hasFactor(store, account.id))));
  if (matches && !lacksFactor && current !== undefined && current.disabledAtMs === undefined) return;
  await store.removeSession(session.hash);
  throw refused();
}

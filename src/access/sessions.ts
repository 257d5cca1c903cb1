import { Failure } from "../core/failure.ts";
import type { AccountRecord, SessionRecord, SignedIn, SignInMethod } from "./account-store.ts";
import type { AccessContext, Origin, PruneContext } from "./context.ts";
import { isCustom, lacks, type Permission, permitsEverywhere, permitsIn } from "./permissions.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";
import { type SignInRules, signsInHere } from "./sign-in-rules.ts";

const MINUTE_MS = 60_000;
/** Time after confirming the password in which sensitive actions need no further proof. */
const FRESH_MS = 10 * MINUTE_MS;
/** Resolution of the last use: writing each use would cost more than the requests. */
const TOUCH_MS = MINUTE_MS;
/** Largest number of sessions listed. */
const MAX_LISTED = 100;

export type { SignedIn };

/** A new session; its ID is only in the cookie, not stored. */
export interface StartedSession extends SignedIn {
  readonly id: string;
}

/** Where a session begins, and with what. */
export interface SessionStart extends Origin {
  /** Default: `password`. */
  readonly method?: SignInMethod;
  /** Default: now. */
  readonly authenticatedAtMs?: number;
  readonly secondFactor?: true | undefined;
  readonly idToken?: string | undefined;
}

/** Starts a session for an account whose password, or other proof, has just been checked. */
export async function startSession(
  { store, clock }: AccessContext,
  account: AccountRecord,
  { network, browser, method = "password", authenticatedAtMs, secondFactor, idToken }: SessionStart,
): Promise<StartedSession> {
  const id = generateToken();
  const nowMs = clock.now();
  const session: SessionRecord = {
    hash: hashToken(id),
    accountId: account.id,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    authenticatedAtMs: authenticatedAtMs ?? nowMs,
    method,
    secondFactor,
    network,
    browser,
  };
  await store.insertSession(session, idToken);
  const customRole = isCustom(account.role)
    ? (await store.roles()).find((role) => role.id === account.role)
    : undefined;
  return { id, session, account, customRole, memberships: await store.memberships(account.id) };
}

export type SessionContext = Pick<AccessContext, "store" | "clock" | "signIn">;

/**
 * Returns the session of an ID; undefined when it has ended, when its account is disabled, and when it owes a second factor that the account
 * has. Counts as a use.
 */
export async function findSession(context: SessionContext, id: string): Promise<SignedIn | undefined> {
  const found = await peekSession(context, id);
  if (found === undefined) return undefined;
  const { store, clock } = context;
  const nowMs = clock.now();
  const { hash, lastSeenAtMs } = found.session;
  if (nowMs - lastSeenAtMs >= TOUCH_MS) await store.touchSession(hash, { lastSeenAtMs: nowMs });
  return found;
}

/** `findSession` without counting as a use: for requests that continue without the user. */
export async function peekSession({ store, clock, signIn }: SessionContext, id: string): Promise<SignedIn | undefined> {
  if (!isToken(id)) return undefined;
  const find = () => store.findSession(hashToken(id));
  const found = await find();
  if (found === undefined || !isValid(found, signIn, clock.now())) return undefined;
  if (!isSecondFactorDue(found, signIn) || !(await hasFactor(store, found.account.id))) return found;
  // The factor may have been set up in this session after it was read.
  const current = await find();
  return current === undefined || isSecondFactorDue(current, signIn) ? undefined : current;
}

/** Whether an account has a passkey or an authenticator app. */
export async function hasFactor(
  store: Pick<AccessContext["store"], "findTotp" | "listPasskeys">,
  accountId: string,
): Promise<boolean> {
  return (await store.findTotp(accountId)) !== undefined || (await store.listPasskeys(accountId)).length > 0;
}

/** A session ends where the way in which it began has been turned off since: passwords and passkeys, or the OpenID provider. */
function isValid(
  { session, account }: Pick<SignedIn, "session" | "account">,
  rules: SignInRules,
  nowMs: number,
): boolean {
  const isOwn = session.method === "password" || session.method === "passkey";
  if (isOwn && !signsInHere(rules, account.email ?? "")) return false;
  if (session.method === "oidc" && rules.provider === undefined) return false;
  return account.disabledAtMs === undefined && !hasEnded(session, rules, nowMs);
}

function hasEnded({ lastSeenAtMs, createdAtMs }: SessionRecord, rules: SignInRules, nowMs: number): boolean {
  return nowMs - lastSeenAtMs >= rules.idleMs || nowMs - createdAtMs >= rules.sessionMs;
}

/** Time until which the session may do what needs a fresh password, in Unix milliseconds. */
export function freshUntilMs({ authenticatedAtMs }: SessionRecord): number {
  return authenticatedAtMs + FRESH_MS;
}

/**
 * Throws `permission_denied`, with the detail `reauthentication_required`, when the proof is too old: see `freshUntilMs`. An
 * administration key passes: its creation required a proof.
 */
export function requireFresh({ session, adminKey }: SignedIn, nowMs: number): void {
  if (adminKey !== undefined || nowMs < freshUntilMs(session)) return;
  throw new Failure("permission_denied", "Confirm that it is you to continue.", {
    detail: "reauthentication_required",
  });
}

/**
 * Whether a second factor has to be set up in this session first. The provider asks for its own; a link is made by an
 * operator with access to the server. Such a session ends when its account has a factor: a password alone would not sign in
 * either, and must not add or remove factors.
 */
export function isSecondFactorDue({ session }: Pick<SignedIn, "session">, { secondFactor }: SignInRules): boolean {
  return secondFactor === "required" && session.method === "password" && session.secondFactor === undefined;
}

/** Throws `permission_denied` without the permission in all accounts, or for the installation. */
export function requireEverywhere(signedIn: SignedIn, permission: Permission): void {
  if (!permitsEverywhere(signedIn, permission)) throw lacks(signedIn, permission);
}

/** Throws `permission_denied` without the permission in this account. */
export function requireIn(signedIn: SignedIn, permission: Permission, accountId: string): void {
  if (!permitsIn(signedIn, permission, accountId)) throw lacks(signedIn, permission);
}

/** Ends the session of an ID, if there is one. Writes nothing for an unknown one, which any client can send. */
export async function signOut(
  { store, clock, signIn, log }: Pick<AccessContext, "store" | "clock" | "signIn" | "log">,
  id: string,
  { network, browser: client }: Pick<Origin, "network" | "browser">,
): Promise<void> {
  const found = isToken(id) ? await store.findSession(hashToken(id)) : undefined;
  if (found === undefined) return;
  await store.removeSession(found.session.hash);
  if (!isValid(found, signIn, clock.now())) return;
  const { id: accountId } = found.account;
  await log.record({ action: "signed_out", actorId: accountId, accountId, network, client });
}

/** The sessions of a signed-in account, most recently used first, at most 100. */
export async function listSessions(
  { store, clock, signIn }: SessionContext,
  { account }: SignedIn,
): Promise<readonly SessionRecord[]> {
  const nowMs = clock.now();
  const listed = await store.listSessions(account.id, MAX_LISTED);
  const sessions = listed.filter((session) => isValid({ session, account }, signIn, nowMs));
  const isDue = (session: SessionRecord): boolean => isSecondFactorDue({ session }, signIn);
  if (!sessions.some(isDue) || !(await hasFactor(store, account.id))) return sessions;
  return sessions.filter((session) => !isDue(session));
}

/** Ends all other sessions of a signed-in account; answers how many. */
export async function signOutElsewhere(
  { store, log }: Pick<AccessContext, "store" | "log">,
  { session, account: { id } }: SignedIn,
  { network, browser: client }: Origin,
): Promise<number> {
  const ended = await store.removeSessions(id, session.hash);
  const details = { sessions: String(ended) };
  await log.record({ action: "signed_out_elsewhere", actorId: id, accountId: id, network, client, details });
  return ended;
}

/** Removes sessions that have expired by `nowMs`; answers how many. */
export function pruneSessions({ store, signIn, nowMs }: PruneContext): Promise<number> {
  return store.pruneSessions({ createdBeforeMs: nowMs - signIn.sessionMs, seenBeforeMs: nowMs - signIn.idleMs });
}

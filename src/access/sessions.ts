import { Failure } from "../core/failure.ts";
import type { AccountRecord, SessionRecord, SignedIn } from "./account-store.ts";
import type { AccessContext, Origin, PruneContext } from "./context.ts";
import { lacks, type Permission, permitsEverywhere, permitsIn } from "./permissions.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";

const MINUTE_MS = 60_000;
/** A session ends after this time without use. */
const IDLE_MS = 120 * MINUTE_MS;
/** Longest life of a session, however much it is used. */
export const SESSION_LIFETIME_MS = 24 * 60 * MINUTE_MS;
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

/** Starts a session for an account whose password has just been checked. */
export async function startSession(
  { store, clock }: AccessContext,
  account: AccountRecord,
  { network, browser }: Origin,
): Promise<StartedSession> {
  const id = generateToken();
  const nowMs = clock.now();
  const session: SessionRecord = {
    hash: hashToken(id),
    accountId: account.id,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    authenticatedAtMs: nowMs,
    network,
    browser,
  };
  await store.insertSession(session);
  return { id, session, account, memberships: await store.memberships(account.id) };
}

/** Returns the session of an ID; undefined when it has ended or its account is disabled. Counts as a use. */
export async function findSession(
  context: Pick<AccessContext, "store" | "clock">,
  id: string,
): Promise<SignedIn | undefined> {
  const found = await peekSession(context, id);
  if (found === undefined) return undefined;
  const { store, clock } = context;
  const nowMs = clock.now();
  const { hash, lastSeenAtMs } = found.session;
  if (nowMs - lastSeenAtMs >= TOUCH_MS) await store.touchSession(hash, { lastSeenAtMs: nowMs });
  return found;
}

/** The same without counting as a use: for requests that continue without the user. */
export async function peekSession(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  id: string,
): Promise<SignedIn | undefined> {
  if (!isToken(id)) return undefined;
  const found = await store.findSession(hashToken(id));
  return found !== undefined && isValid(found, clock.now()) ? found : undefined;
}

function isValid({ session, account }: SignedIn, nowMs: number): boolean {
  return account.disabledAtMs === undefined && !hasEnded(session, nowMs);
}

function hasEnded({ lastSeenAtMs, createdAtMs }: SessionRecord, nowMs: number): boolean {
  return nowMs - lastSeenAtMs >= IDLE_MS || nowMs - createdAtMs >= SESSION_LIFETIME_MS;
}

/** Time until which the session may do what needs a fresh password, in Unix milliseconds. */
export function freshUntilMs({ authenticatedAtMs }: SessionRecord): number {
  return authenticatedAtMs + FRESH_MS;
}

/** Throws `permission_denied`, with the detail `reauthentication_required`, when the password was confirmed too long ago. */
export function requireFresh({ session }: SignedIn, nowMs: number): void {
  if (nowMs < freshUntilMs(session)) return;
  throw new Failure("permission_denied", "Confirm your password to continue.", {
    detail: "reauthentication_required",
  });
}

/** Throws `permission_denied` without the permission in all accounts, or for the installation. */
export function requireEverywhere(signedIn: SignedIn, permission: Permission): void {
  if (!permitsEverywhere(signedIn, permission)) throw lacks(signedIn, permission);
}

/** Throws `permission_denied` without the permission in this account. */
export function requireIn(signedIn: SignedIn, permission: Permission, accountId: string): void {
  if (!permitsIn(signedIn, permission, accountId)) throw lacks(signedIn, permission);
}

/** Ends the session of an ID, if there is one. Writes nothing for an unknown one, which anybody can send. */
export async function signOut(
  { store, clock, log }: Pick<AccessContext, "store" | "clock" | "log">,
  id: string,
  { network, browser: client }: Pick<Origin, "network" | "browser">,
): Promise<void> {
  const found = isToken(id) ? await store.findSession(hashToken(id)) : undefined;
  if (found === undefined) return;
  await store.removeSession(found.session.hash);
  if (!isValid(found, clock.now())) return;
  const { id: accountId } = found.account;
  await log.record({ action: "signed_out", actorId: accountId, accountId, network, client });
}

/** The sessions of a signed-in account, most recently used first, at most 100. */
export async function listSessions(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  { account }: SignedIn,
): Promise<readonly SessionRecord[]> {
  const nowMs = clock.now();
  return (await store.listSessions(account.id, MAX_LISTED)).filter((session) => !hasEnded(session, nowMs));
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
export function pruneSessions({ store, nowMs }: PruneContext): Promise<number> {
  return store.pruneSessions({ createdBeforeMs: nowMs - SESSION_LIFETIME_MS, seenBeforeMs: nowMs - IDLE_MS });
}

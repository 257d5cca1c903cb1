import type { AccountRecord, InvitationRecord, LinkedIdentity, Role } from "../account-store.ts";
import { leavesOwner, withdrawInvitations } from "../accounts.ts";
import { toEmail } from "../address.ts";
import { accountFields, setFields } from "../audit-fields.ts";
import type { NewEntry } from "../audit-log.ts";
import type { AccessContext, Origin } from "../context.ts";
import { freshUntilMs, type SignedIn, startSession, type StartedSession } from "../sessions.ts";
import { completeInvitation, findInvitationOf } from "../invitations.ts";
import { isCustom } from "../permissions.ts";
import { isCaptured } from "../sign-in-rules.ts";
import { claim, nameFor, newAccount } from "../sign-up.ts";
import type { Person } from "./person.ts";
import { OidcRefusal, type RefusalReason } from "./refusal.ts";
import { roleOf, type RoleRules } from "./roles.ts";

export interface PersonRules extends RoleRules {
  /** Whether actions that need a fresh proof require a new authentication at the provider, as `auth_time` shows. */
  readonly requiresAuthTime: boolean;
}

/** A person whom the provider has signed in, with the rules and the origin of the sign-in. */
export interface Arrival {
  readonly person: Person;
  readonly rules: PersonRules;
  readonly origin: Origin;
}

/**
 * Starts a session for a person whom the provider has signed in. The account is found by issuer and subject; only a first sign-in looks
 * at the address, which has to be verified, and invited or of a configured domain. Throws an `OidcRefusal`, and records it;
 * `rate_limited` for too many sign-ins of the account.
 */
export async function signInPerson(context: AccessContext, arrival: Arrival): Promise<StartedSession> {
  const { person, rules, origin } = arrival;
  let account = await context.store.findByIdentity(person);
  if (account?.disabledAtMs !== undefined) return refuse(context, arrival, { reason: "disabled", account });
  const email = person.hasVerifiedEmail ? normalized(person.email) : undefined;
  const isNew = account === undefined && email !== undefined;
  const invitation = isNew ? await findInvitationOf(context, email) : undefined;
  const role = await roleFor(context, arrival, { account, invitation });
  account ??= await welcome(context, arrival, { email, role, invitation });
  await context.throttle.enterSignIn("provider", account.id);
  if (rules.roles.size > 0) account = await setRole(context, account, role);
  const started = await startSession(context, account, {
    ...origin,
    method: "oidc",
    authenticatedAtMs: provenAtMs(arrival, context.clock.now()) ?? 0,
    idToken: person.idToken,
  });
  // The account was disabled or unlinked while the session began.
  const current = await context.store.findByIdentity(person);
  if (current?.id !== account.id || current.disabledAtMs !== undefined) {
    await context.store.removeSession(started.session.hash);
    return refuse(context, arrival, { reason: "disabled", account });
  }
  const details = { method: "oidc" };
  const { id } = account;
  await context.log.record({ action: "signed_in", actorId: id, accountId: id, ...placeOf(origin), details });
  return started;
}

/**
 * Confirms that the person who is signed in is still the same, and has just authenticated at the provider. Throws an
 * `OidcRefusal`, and records it.
 */
export async function confirmPerson(
  context: AccessContext,
  arrival: Arrival,
  signedIn: SignedIn | undefined,
): Promise<void> {
  const { person, origin } = arrival;
  const { store, clock, log } = context;
  const account = await store.findByIdentity(person);
  if (signedIn === undefined || account?.id !== signedIn.account.id)
    return refuse(context, arrival, { reason: "other_person", account });
  const authenticatedAtMs = provenAtMs(arrival, clock.now());
  if (authenticatedAtMs === undefined) return refuse(context, arrival, { reason: "no_auth_time", account });
  if (clock.now() >= freshUntilMs({ ...signedIn.session, authenticatedAtMs }))
    return refuse(context, arrival, { reason: "not_asked", account });
  await store.touchSession(signedIn.session.hash, { authenticatedAtMs });
  const details = { method: "oidc" };
  await log.record({
    action: "reauthenticated",
    actorId: account.id,
    accountId: account.id,
    ...placeOf(origin),
    details,
  });
}

/** Time of the person's last authentication, in Unix milliseconds; undefined when the provider must send it and does not. */
function provenAtMs({ person: { authenticatedAtMs }, rules }: Arrival, nowMs: number): number | undefined {
  if (authenticatedAtMs !== undefined) return Math.min(authenticatedAtMs, nowMs);
  return rules.requiresAuthTime ? undefined : nowMs;
}

/**
 * Returns the role by the person's groups, or the invitation's where groups have no roles. Ends the sessions of an account
 * without a role.
 */
async function roleFor(
  context: AccessContext,
  arrival: Arrival,
  { account, invitation }: { readonly account: AccountRecord | undefined; readonly invitation: Invited },
): Promise<Role> {
  try {
    const isInvited = invitation !== undefined && arrival.rules.roles.size === 0;
    const role = isInvited ? invitation.role : roleOf(arrival.person, arrival.rules);
    if (isCustom(role) && !(await context.store.roles()).some(({ id }) => id === role))
      throw new OidcRefusal("no_role");
    return role;
  } catch (reason) {
    if (!(reason instanceof OidcRefusal)) throw reason;
    if (account !== undefined) await context.store.removeSessions(account.id);
    return refuse(context, arrival, { reason: reason.reason, account });
  }
}

/** Undefined: none. */
type Invited = InvitationRecord | undefined;

interface Newcomer {
  /** Verified and normalised; undefined: there is none. */
  readonly email: string | undefined;
  readonly role: Role;
  readonly invitation: Invited;
}

/** Links the account of the address, or makes one. */
async function welcome(
  context: AccessContext,
  arrival: Arrival,
  { email, role, invitation }: Newcomer,
): Promise<AccountRecord> {
  const { person } = arrival;
  if (email === undefined) return refuse(context, arrival, { reason: "unverified" });
  const identity = { issuer: person.issuer, subject: person.subject, linkedAtMs: context.clock.now() };
  const existing = await context.store.findByEmail(email);
  if (existing?.disabledAtMs !== undefined) return refuse(context, arrival, { reason: "disabled", account: existing });
  const isInvited = invitation !== undefined && existing === undefined;
  if (!isInvited && !isCaptured(context.signIn, email))
    return refuse(context, arrival, {
      reason: existing === undefined ? "no_account" : "not_linked",
      account: existing,
    });
  if (!isInvited && !person.belongsToDomain)
    return refuse(context, arrival, { reason: "unverified", account: existing });
  const account =
    existing === undefined
      ? await create(context, arrival, { email, role, identity, invitation })
      : await take(context, arrival, { existing, identity });
  // Another sign-in of the same person in the same moment.
  const linked = account ?? (await context.store.findByIdentity(person));
  if (linked !== undefined) return linked;
  const isTaken = (await context.store.findByEmail(email)) !== undefined;
  return refuse(context, arrival, { reason: isTaken ? "not_linked" : "no_account", account: existing });
}

/**
 * Links an existing account. Its password ends with that: the person who chose it may not own the address.
 * Undefined when the account has another identity of the issuer, such as that of a former holder of the address.
 */
async function take(
  { store, log }: AccessContext,
  { origin }: Arrival,
  { existing, identity }: { readonly existing: AccountRecord; readonly identity: LinkedIdentity },
): Promise<AccountRecord | undefined> {
  const { id } = existing;
  if (!(await store.link(id, identity))) return undefined;
  const { issuer, subject } = identity;
  const after = { issuer, subject };
  await log.record({ action: "identity_linked", actorId: id, accountId: id, ...placeOf(origin), after });
  return { ...existing, passwordHash: undefined };
}

/**
 * Makes an account, or gives the default account to the first owner. Undefined when the address or the identity is taken, or the
 * invitation was used or revoked meanwhile.
 */
async function create(
  context: AccessContext,
  { person, origin }: Arrival,
  { email, role, identity, invitation }: Newcomer & { readonly email: string; readonly identity: LinkedIdentity },
): Promise<AccountRecord | undefined> {
  const { store, clock, log } = context;
  const newcomer = { email, name: displayName(person.name, email), passwordHash: undefined };
  let account = role === "owner" ? await claim(context, newcomer, identity) : undefined;
  if (account !== undefined) {
    await store.removeSetupTokens();
    // The account exists already, so that the invitation must not make another one.
    if (invitation !== undefined) await store.removeInvitation(invitation.id);
  } else {
    const nowMs = clock.now();
    account = newAccount(newcomer, role, nowMs);
    const isMade =
      invitation === undefined
        ? await store.insert(account, identity)
        : await store.acceptInvitation(invitation.hash, account, { atMs: nowMs, identity });
    if (!isMade) return undefined;
    if (invitation !== undefined)
      await completeInvitation(context, invitation, { accountId: account.id, ...placeOf(origin) });
  }
  const { id } = account;
  await log.record({
    action: "signed_up",
    actorId: id,
    accountId: id,
    ...placeOf(origin),
    after: setFields(accountFields(account)),
    details: { method: "oidc" },
  });
  return account;
}

/** Gives an account the role of its groups, except the last owner, who stays one. */
async function setRole(context: AccessContext, account: AccountRecord, role: Role): Promise<AccountRecord> {
  if (account.role === role) return account;
  const { store } = context;
  // A role that is given in the same moment stays until the next sign-in.
  if (!(await store.update(account.id, { role }, { role: account.role })))
    return (await store.find(account.id)) ?? account;
  if (!(await leavesOwner(store, account, { role }))) return account;
  const actor = { kind: "gateway", id: undefined } as const;
  const difference = { before: { role: account.role }, after: { role } };
  await context.log.record({ action: "role_by_groups", actor, accountId: account.id, ...difference });
  await withdrawInvitations(context, account.id, { actor });
  return { ...account, role };
}

/** Network and browser of a sign-in, for the audit log. */
function placeOf({ network, browser: client }: Origin): Pick<NewEntry, "network" | "client"> {
  return { network, client };
}

function normalized(email: string | undefined): string | undefined {
  try {
    return email === undefined ? undefined : toEmail(email);
  } catch {
    return undefined;
  }
}

/** The name of the provider, if it is one that accounts may have. */
function displayName(name: string | undefined, email: string): string {
  try {
    return nameFor(name, email);
  } catch {
    return nameFor(undefined, email);
  }
}

async function refuse(
  { log }: AccessContext,
  { person: { issuer, subject }, origin }: Arrival,
  { reason, account }: { readonly reason: RefusalReason; readonly account?: AccountRecord | undefined },
): Promise<never> {
  const details = { method: "oidc", reason, issuer, subject };
  await log.record({ action: "sign_in_refused", accountId: account?.id, ...placeOf(origin), details });
  throw new OidcRefusal(reason);
}

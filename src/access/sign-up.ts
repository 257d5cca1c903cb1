import { Failure, invalidField } from "../core/failure.ts";
import { NO_LIMITS } from "../core/principal.ts";
import type { AccountRecord, InvitationRecord, LinkedIdentity, Role } from "./account-store.ts";
import { toEmail } from "./address.ts";
import { accountFields, setFields } from "./audit-fields.ts";
import { randomBase62 } from "./api-key.ts";
import { checkName } from "./checks.ts";
import type { AccessContext, Origin } from "./context.ts";
import { completeInvitation, findInvitation } from "./invitations.ts";
import { DEFAULT_ACCOUNT_ID } from "./key-store.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import { type StartedSession, startSession } from "./sessions.ts";
import { requirePasswordSignIn } from "./sign-in-rules.ts";
import { isSetupToken } from "./setup-token.ts";

export interface Application {
  readonly email: string;
  readonly password: string;
  /** Default: the part of the address before the @. */
  readonly name?: string | undefined;
  /** Token of an invitation's link. */
  readonly token?: string | undefined;
  /** Token of the link printed at startup, for the first owner. */
  readonly setupToken?: string | undefined;
}

/**
 * Makes an account and signs in. On a fresh installation the first person takes over the default account as its owner; of
 * two simultaneous ones, the second is treated like any later one. Where other machines may reach the page, the first person
 * needs a setup token or an owner's invitation from the command line; where sign-up is closed, this always fails.
 *
 * No e-mail confirms an address, so a person who may sign up with an address learns from the failure when it is taken. Others do
 * not, because the right to sign up is checked first. In either case the password has been hashed by then, and the attempt
 * counts for its network.
 *
 * Throws `permission_denied` without the right to sign up, `invalid_request` for invalid input, `rate_limited`.
 */
export async function signUp(
  context: AccessContext,
  application: Application,
  origin: Origin,
): Promise<StartedSession> {
  const { network, browser: client } = origin;
  const email = toEmail(application.email);
  requirePasswordSignIn(context.signIn, email);
  const name = nameFor(application.name, email);
  const password = toPassword(application.password);
  checkPassword(password, email);
  if (network !== undefined) await context.signInQueue.take(network, () => context.throttle.enterSignUp(network));
  const token = application.token === "" ? undefined : application.token;
  const isVouchedFor = (await context.store.isClaimed())
    ? (await admit(context, token, email)) !== undefined
    : await admitFirst(context, { email, token, setupToken: application.setupToken }, origin);
  const passwordHash = await context.passwords.hash(password, isVouchedFor ? { known: email } : { network });
  const newcomer = { email, name, passwordHash };
  const claimed = await claim(context, newcomer);
  if (claimed !== undefined) await context.store.removeSetupTokens();
  const account = claimed ?? (await join(context, newcomer, { token, origin }));
  // An invitation that was not needed must not stay usable for others.
  if (claimed !== undefined && token !== undefined) await removeUnused(context, token);
  const after = setFields(accountFields(account));
  await context.log.record({ action: "signed_up", actorId: account.id, accountId: account.id, network, client, after });
  return startSession(context, account, origin);
}

/** The data of every new account. */
export type Newcomer = Pick<AccountRecord, "name" | "passwordHash"> & { readonly email: string };

/** Takes over the default account; undefined when it has an owner. */
export async function claim(
  { store }: Pick<AccessContext, "store">,
  newcomer: Newcomer,
  identity?: LinkedIdentity,
): Promise<AccountRecord | undefined> {
  return (await store.claimDefault(newcomer, identity)) ? store.find(DEFAULT_ACCOUNT_ID) : undefined;
}

/** The record of a new account. */
export function newAccount(newcomer: Newcomer, role: Role, nowMs: number): AccountRecord {
  return {
    ...newcomer,
    id: `acct_${randomBase62(16)}`,
    kind: "person",
    role,
    limits: NO_LIMITS,
    createdAtMs: nowMs,
    disabledAtMs: undefined,
  };
}

/** The given name, or else the address's local part. Throws an `invalid_request` Failure. */
export function nameFor(given: string | undefined, email: string): string {
  return checkName(given === undefined || given === "" ? email.slice(0, email.lastIndexOf("@")).slice(0, 100) : given);
}

/** Makes a further account. Throws when the right to do so is missing or has been lost meanwhile. */
async function join(
  context: AccessContext,
  newcomer: Newcomer,
  { token, origin }: { readonly token: string | undefined; readonly origin: Origin },
): Promise<AccountRecord> {
  const { store, clock } = context;
  const invitation = await admit(context, token, newcomer.email);
  const account = newAccount(newcomer, invitation?.role ?? "developer", clock.now());
  if (invitation === undefined) {
    if (!(await store.insert(account))) throw taken();
    return account;
  }
  if (!(await store.acceptInvitation(invitation.hash, account, { atMs: clock.now() }))) {
    throw (await store.findByEmail(newcomer.email)) === undefined ? notInvited() : taken();
  }
  const place = { network: origin.network, client: origin.browser };
  await completeInvitation(context, invitation, { accountId: account.id, ...place });
  return account;
}

/**
 * Returns the invitation, if one is used. Throws `permission_denied` without the right to make an account with this address.
 */
async function admit(
  context: AccessContext,
  token: string | undefined,
  email: string,
): Promise<InvitationRecord | undefined> {
  if (context.signUp === "closed") throw new Failure("permission_denied", "Sign-up is closed.");
  if (token === undefined) {
    if (context.signUp === "open") return undefined;
    throw new Failure("permission_denied", "Sign-up requires an invitation.");
  }
  const invitation = await findInvitation(context, token);
  if (invitation === undefined || (invitation.email ?? email) !== email) throw notInvited();
  return invitation;
}

/** Answers whether a token gave the right to become the first owner. Throws `permission_denied` without it. */
async function admitFirst(
  context: AccessContext,
  { email, token, setupToken }: Pick<Application, "email" | "token" | "setupToken">,
  { isForwarded = false }: Origin,
): Promise<boolean> {
  if (context.signUp === "closed")
    throw new Failure("permission_denied", `Sign-up is closed. Create the first account with: ${CREATE_FIRST}`);
  const isNeeded = context.isExposed || isForwarded;
  if (!isNeeded) return false;
  if (await isSetupToken(context, setupToken)) return true;
  const invitation = token === undefined ? undefined : await findInvitation(context, token);
  if (invitation?.role === "owner" && (invitation.email ?? email) === email) return true;
  if (!context.isExposed)
    throw new Failure(
      "permission_denied",
      "This request came through a proxy, so this page may be public. Set http.public_url to the public address and restart " +
        `Parley to get a setup token, or run: ${CREATE_FIRST}`,
    );
  throw new Failure(
    "permission_denied",
    "Creating the first account requires the setup token, which is part of the link that Parley prints at startup. " +
      `Restart Parley to print a new one, or run: ${CREATE_FIRST}`,
  );
}

/** The command that makes the first account. */
export const CREATE_FIRST = "parley accounts create --role owner --email ADDRESS --password-stdin";

async function removeUnused(context: AccessContext, token: string): Promise<void> {
  const invitation = await findInvitation(context, token);
  if (invitation !== undefined) await context.store.removeInvitation(invitation.id);
}

function notInvited(): Failure {
  const why = "It may have been used or revoked, have expired, or be for another e-mail address.";
  return new Failure("permission_denied", `This invitation is not valid. ${why}`);
}

function taken(): Failure {
  return invalidField("email", "already has an account; sign in instead");
}

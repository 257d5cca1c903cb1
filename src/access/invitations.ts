import { Failure, invalidField } from "../core/failure.ts";
import type { InvitationRecord, Role } from "./account-store.ts";
import type { Actor } from "./accounts.ts";
import { hashEmail, toEmail } from "./address.ts";
import { randomBase62 } from "./api-key.ts";
import type { NewEntry } from "./audit-log.ts";
import { unknownId } from "./checks.ts";
import type { AccessContext, PruneContext } from "./context.ts";
import { DEFAULT_ACCOUNT_ID } from "./key-store.ts";
import { rolesThatMayChange } from "./role-changes.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";
import type { Membership } from "./team-store.ts";
import { joinInvited } from "./teams.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const LIFETIME_MS = 7 * DAY_MS;
/** Time for which used and expired invitations are still listed. */
const KEPT_MS = 30 * DAY_MS;
const MAX_INVITATIONS = 1000;

/** An invitation to make, by the inviting account or the command line. */
export interface InvitationRequest extends Actor {
  /** The only address that may use it; undefined for anyone with the link. */
  readonly email: string | undefined;
  readonly role: Role;
  /** Team that the new account joins; the inviter must be allowed to add members to it. Default: none. */
  readonly team?: Pick<Membership, "teamId" | "role"> | undefined;
}

/** A new invitation; its token is not stored. */
export interface CreatedInvitation {
  readonly token: string;
  readonly record: InvitationRecord;
}

/**
 * Makes an invitation for seven days. Throws `invalid_request` when the address has an account, when it is missing while sign-in with a
 * password is off, and when sign-up is closed; `permission_denied` when the inviter's role does not allow an account of this one.
 */
export async function createInvitation(
  { store, clock, log, signUp, signIn }: Pick<AccessContext, "store" | "clock" | "log" | "signUp" | "signIn">,
  request: InvitationRequest,
): Promise<CreatedInvitation> {
  if (signUp === "closed") throw new Failure("invalid_request", "Sign-up is closed, so invitations cannot be used.");
  const email = request.email === undefined ? undefined : toEmail(request.email);
  if (email !== undefined && (await store.findByEmail(email)) !== undefined) {
    throw invalidField("email", "already has an account");
  }
  if (email === undefined && !signIn.password)
    throw invalidField("email", `is required, because ${signIn.provider?.name} says who is invited by the address`);
  const nowMs = clock.now();
  const open = (await store.listInvitations()).filter((record) => isUsable(record, nowMs));
  if (open.length >= MAX_INVITATIONS)
    throw new Failure("invalid_request", "There are too many pending invitations. Revoke some first.");
  const granting = await rolesThatMayChange(store, { after: request.role }, request);
  const token = generateToken();
  const record: InvitationRecord = {
    id: `inv_${randomBase62(16)}`,
    hash: hashToken(token),
    email,
    role: request.role,
    ...(request.team !== undefined && { team: request.team }),
    // The command line acts for the installation, represented by the default account.
    createdBy: request.actorId ?? DEFAULT_ACCOUNT_ID,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + LIFETIME_MS,
    usedAtMs: undefined,
  };
  await store.insertInvitation(record);
  // The inviter may have lost the role since the check: its other invitations were withdrawn before this one existed.
  const inviter = request.actorId === undefined ? undefined : await store.find(request.actorId);
  const mayInvite = inviter?.disabledAtMs === undefined && granting.roles.some((role) => role === inviter?.role);
  if (request.actorId !== undefined && !mayInvite) {
    await store.removeInvitation(record.id);
    throw new Failure("permission_denied", `These roles can invite a new ${record.role}: ${granting.names}.`);
  }
  const { actorId, actor, network, client } = request;
  await log.record({
    action: "invitation_created",
    actorId,
    actor,
    network,
    client,
    object: { kind: "invitation", id: record.id },
    after: {
      role: record.role,
      ...(record.team !== undefined && { team: record.team.teamId, team_role: record.team.role }),
      expires_at: new Date(record.expiresAtMs).toISOString(),
    },
    ...(email !== undefined && { details: { email_hash: hashEmail(email) } }),
  });
  return { token, record };
}

/** Returns the invitation of a token; undefined for an unknown, used or expired one. */
export async function findInvitation(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  token: string,
): Promise<InvitationRecord | undefined> {
  if (!isToken(token)) return undefined;
  const found = await store.findInvitation(hashToken(token));
  return found !== undefined && isUsable(found, clock.now()) ? found : undefined;
}

/** The latest usable invitation of a normalised address; undefined where there is none, and where sign-up is closed. */
export async function findInvitationOf(
  { store, clock, signUp }: Pick<AccessContext, "store" | "clock" | "signUp">,
  email: string,
): Promise<InvitationRecord | undefined> {
  if (signUp === "closed") return undefined;
  const nowMs = clock.now();
  return (await store.listInvitations()).find((record) => record.email === email && isUsable(record, nowMs));
}

/**
 * Revokes an invitation. Throws `invalid_request` for an unknown one, `permission_denied` when the actor's role does not
 * allow the role of the invitation.
 */
export async function revokeInvitation(
  { store, log }: Pick<AccessContext, "store" | "log">,
  id: string,
  actor: Actor,
): Promise<void> {
  const invitation = (await store.listInvitations()).find((each) => each.id === id);
  if (invitation === undefined) throw unknownId("invitation", id);
  const { roles, names } = await rolesThatMayChange(store, { before: invitation.role }, actor);
  const by = actor.actorId === undefined ? undefined : await store.find(actor.actorId);
  if (actor.actorId !== undefined && !roles.some((role) => role === by?.role))
    throw new Failure("permission_denied", `This invitation can be revoked by these roles: ${names}.`);
  if (!(await store.removeInvitation(id))) throw unknownId("invitation", id);
  await log.record({ action: "invitation_revoked", ...actor, object: { kind: "invitation", id } });
}

/** Notes that an invitation made this account, which becomes a member of its team. */
export async function completeInvitation(
  context: Pick<AccessContext, "store" | "clock" | "log">,
  invitation: InvitationRecord,
  { accountId, ...place }: { readonly accountId: string } & Pick<NewEntry, "network" | "client">,
): Promise<void> {
  const { id, team, createdBy } = invitation;
  const hasJoined = team !== undefined && (await joinInvited(context, { team, createdBy }, accountId));
  await context.log.record({
    action: "invitation_accepted",
    actorId: accountId,
    accountId,
    object: { kind: "invitation", id },
    ...place,
    ...(team !== undefined && { details: { team: team.teamId, joined: hasJoined ? "yes" : "no" } }),
  });
}

/** Removes invitations that ended a month ago; answers how many. */
export async function pruneInvitations({ store, nowMs }: PruneContext): Promise<number> {
  const old = (await store.listInvitations()).filter(({ expiresAtMs }) => expiresAtMs + KEPT_MS < nowMs);
  for (const { id } of old) await store.removeInvitation(id);
  return old.length;
}

function isUsable({ usedAtMs, expiresAtMs }: InvitationRecord, nowMs: number): boolean {
  return usedAtMs === undefined && nowMs < expiresAtMs;
}

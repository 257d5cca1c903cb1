import { Failure, invalidField } from "../core/failure.ts";
import { type Limits, NO_LIMITS } from "../core/principal.ts";
import type { AccountKind, AccountRecord } from "./account-store.ts";
import type { Actor } from "./accounts.ts";
import { toEmail } from "./address.ts";
import { randomBase62 } from "./api-key.ts";
import { accountFields, memberEntry, setFields } from "./audit-fields.ts";
import { checkLimits, checkName, isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";
import { lacks, missingForTeamRole, type Permission, permitsIn, type Subject } from "./permissions.ts";
import type { Member, Membership, TeamActor, TeamRole } from "./team-store.ts";

/** Largest number of members of a team, and of teams of a person: each call of the dashboard reads a person's. */
const MOST = { members: 1_000, teams: 100 } as const;

type TeamContext = Pick<AccessContext, "store" | "clock" | "log">;

/** A person, by ID or e-mail address. */
export type Person = { readonly id: string } | { readonly email: string };

/** Makes an account without sign-in. Throws `invalid_request` for an invalid name or limit. */
export async function createTeam(
  { store, clock, log }: TeamContext,
  {
    name,
    kind,
    limits,
    actor,
  }: {
    readonly name: string;
    readonly kind: Exclude<AccountKind, "person">;
    readonly limits: Limits | undefined;
    readonly actor: Actor;
  },
): Promise<AccountRecord> {
  const account: AccountRecord = {
    id: `acct_${randomBase62(16)}`,
    kind,
    email: undefined,
    name: checkName(name),
    role: "developer",
    passwordHash: undefined,
    limits: checkLimits(limits ?? NO_LIMITS),
    createdAtMs: clock.now(),
    disabledAtMs: undefined,
  };
  await store.insert(account);
  const after = { kind, ...setFields(accountFields(account)) };
  await log.record({ action: "team_created", accountId: account.id, ...actor, after });
  return account;
}

/** The members of a team. Throws `invalid_request` for an unknown team. */
export async function listMembers({ store }: Pick<TeamContext, "store">, teamId: string): Promise<readonly Member[]> {
  const team = isId(teamId) ? await store.find(teamId) : undefined;
  if (team === undefined || team.kind === "person") throw unknownId("team", teamId);
  return store.members(teamId);
}

/**
 * Adds a person to a team, or changes the role of a member. Throws `invalid_request` for an unknown team, an unknown or disabled person,
 * and above the limits; `permission_denied` when the actor has just lost the permission, or does not have those of the role in the team,
 * before or after, itself.
 */
export async function setMember(
  context: TeamContext,
  {
    teamId,
    person,
    role,
    actor,
  }: { readonly teamId: string; readonly person: Person; readonly role: TeamRole; readonly actor: Actor },
): Promise<void> {
  const { accountId, before } = await change(context, { teamId, person, role, actor });
  if (before === role) return;
  await context.log.record({ ...memberEntry(teamId, { member: accountId, before, after: role }), ...actor });
}

/**
 * Checks that the caller may add a member with this role to a team. Throws `invalid_request` for an unknown team, `permission_denied`
 * without the permission.
 */
export async function requireMayAdd(
  { store }: Pick<TeamContext, "store">,
  { teamId, role }: Pick<Membership, "teamId" | "role">,
  caller: Subject,
): Promise<void> {
  const missing = missingToChange(caller, teamId, [role]);
  if (missing !== undefined) throw lacks(caller, missing);
  const team = isId(teamId) ? await store.find(teamId) : undefined;
  if (team === undefined || team.kind === "person") throw unknownId("team", teamId, "team_id");
}

/** The permission that is missing for a change of a member of a team with these roles, before and after. */
function missingToChange(
  actor: Subject,
  teamId: string,
  roles: readonly (TeamRole | undefined)[],
): Permission | undefined {
  if (!permitsIn(actor, "members.write", teamId)) return "members.write";
  return roles.map((each) => each && missingForTeamRole(actor, each, teamId)).find((each) => each !== undefined);
}

/**
 * Makes an invited person a member, as the inviter could at this moment. False when the inviter no longer can, or the team or the person
 * is at a limit.
 */
export async function joinInvited(
  context: TeamContext,
  {
    team: { teamId, role },
    createdBy,
  }: { readonly team: Pick<Membership, "teamId" | "role">; readonly createdBy: string },
  accountId: string,
): Promise<boolean> {
  const actor = { actorId: createdBy, network: undefined };
  try {
    await setMember(context, { teamId, person: { id: accountId }, role, actor });
    return true;
  } catch (error) {
    if (error instanceof Failure && (error.code === "permission_denied" || error.code === "invalid_request"))
      return false;
    throw error;
  }
}

/** Removes a member of a team; false when the person is none. Throws as `setMember`. */
export async function removeMember(
  context: TeamContext,
  { teamId, person, actor }: { readonly teamId: string; readonly person: Person; readonly actor: Actor },
): Promise<boolean> {
  const { accountId, before } = await change(context, { teamId, person, role: undefined, actor });
  if (before === undefined) return false;
  await context.log.record({ ...memberEntry(teamId, { member: accountId, before }), ...actor });
  return true;
}

async function change(
  { store, clock }: TeamContext,
  {
    teamId,
    person,
    role,
    actor: { actorId, scope },
  }: {
    readonly teamId: string;
    readonly person: Person;
    readonly role: TeamRole | undefined;
    readonly actor: Actor;
  },
): Promise<{ readonly accountId: string; readonly before: TeamRole | undefined }> {
  if (!isId(teamId)) throw unknownId("team", teamId);
  const unknownPerson = invalidField(
    "id" in person ? "account_id" : "email",
    "does not name the account of a person who can sign in",
  );
  const found = "id" in person ? person : await store.findByEmail(toEmail(person.email));
  if (found === undefined || !isId(found.id)) throw unknownPerson;
  let denied: Failure | undefined;
  // May run more than once.
  const mayChange = (account: TeamActor, before: TeamRole | undefined): boolean => {
    const actor = { ...account, ...(scope !== undefined && { adminKey: { permissions: scope } }) };
    const missing = missingToChange(actor, teamId, [before, role]);
    denied = missing && lacks(actor, missing);
    return denied === undefined;
  };
  const changed = await store.changeMember(
    { teamId, accountId: found.id, role, atMs: clock.now() },
    { most: MOST, ...(actorId !== undefined && { actor: { id: actorId, mayChange } }) },
  );
  if (typeof changed === "object") return { accountId: found.id, before: changed.before };
  if (changed === "unknown team") throw unknownId("team", teamId);
  if (changed === "unknown person") throw unknownPerson;
  if (changed === "denied") throw denied ?? new Failure("permission_denied", "This account is disabled.");
  throw new Failure(
    "invalid_request",
    changed === "too many members"
      ? `A team has at most ${MOST.members} members. Remove one first.`
      : `A person is in at most ${MOST.teams} teams. Remove the person from one first.`,
  );
}

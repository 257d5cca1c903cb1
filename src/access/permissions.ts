import { Failure } from "../core/failure.ts";
import type { AccountRecord, BuiltInRole, Role } from "./account-store.ts";
import type { AdminKeyRecord } from "./admin-key-store.ts";
import type { CustomRole, CustomRoleId } from "./role-store.ts";
import type { Membership, TeamRole } from "./team-store.ts";

/**
 * All permissions of the dashboard. Those for keys, usage and requests can be held in single accounts, the others only for
 * the installation.
 */
export const PERMISSIONS = [
  "keys.read",
  "keys.write",
  "keys.restrict",
  "usage.read",
  "requests.read",
  "content.read",
  "audit.read",
  "audit.stream",
  "alerts.read",
  "alerts.write",
  "alerts.manage",
  "routing.read",
  "routing.write",
  "credentials.write",
  "playground.use",
  "profile.write",
  "members.read",
  "members.write",
  "teams.write",
  "accounts.read",
  "accounts.write",
  "owners.write",
  "roles.write",
  "admin_keys.read",
  "admin_keys.write",
  "configuration.read",
  "configuration.write",
  "models.test",
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** Permissions that change nothing and spend nothing. */
const READING: readonly Permission[] = [
  "keys.read",
  "usage.read",
  "requests.read",
  "audit.read",
  "alerts.read",
  "routing.read",
  "members.read",
];

/** Permissions of a person in the own account. */
const OWN: readonly Permission[] = [
  ...READING,
  "keys.write",
  "alerts.write",
  "routing.write",
  "credentials.write",
  "playground.use",
  "profile.write",
];

/** Permissions of a role: in all accounts and for the installation, and in the person's own account. */
interface RolePermissions {
  readonly everywhere: readonly Permission[];
  readonly own: readonly Permission[];
}

/**
 * Permissions that a role may give in all accounts. Not the playground: its requests spend the money of the account whose
 * key they use.
 */
export const PERMISSIONS_EVERYWHERE: readonly Permission[] = PERMISSIONS.filter(
  (permission) => permission !== "playground.use",
);

const OWNERS_ONLY: ReadonlySet<Permission> = new Set(["owners.write", "roles.write"]);

const ROLE_PERMISSIONS: Readonly<Record<BuiltInRole, RolePermissions>> = {
  owner: { everywhere: PERMISSIONS_EVERYWHERE, own: OWN },
  administrator: { everywhere: PERMISSIONS_EVERYWHERE.filter((each) => !OWNERS_ONLY.has(each)), own: OWN },
  developer: { everywhere: [], own: OWN },
  viewer: { everywhere: [], own: READING },
};

/** Permissions of a member of a team in the team's account; a viewer of the organisation only reads. */
const TEAM_PERMISSIONS: Readonly<Record<TeamRole, readonly Permission[]>> = {
  maintainer: [...OWN, "members.write"],
  developer: [...READING, "keys.write", "alerts.write", "playground.use"],
  viewer: READING,
};

/** All roles of members, the one with most permissions first. */
export const TEAM_ROLES = Object.keys(TEAM_PERMISSIONS) as readonly TeamRole[];

/** All roles but custom ones, the one with most permissions first. */
export const ROLES = Object.keys(ROLE_PERMISSIONS) as readonly BuiltInRole[];

/** Whether an owner has made the role. */
export function isCustom(role: Role): role is CustomRoleId {
  return role.startsWith("role_");
}

/** Permissions of a role in all accounts and for the installation; none for an unknown custom role. */
export function permissionsOf(role: Role, custom: readonly CustomRole[]): readonly Permission[] {
  if (!isCustom(role)) return ROLE_PERMISSIONS[role].everywhere;
  return custom.find(({ id }) => id === role)?.permissions ?? [];
}

/** The roles that allow all of these in all accounts, or for the installation. */
export function rolesWith(needed: readonly Permission[], custom: readonly CustomRole[]): readonly Role[] {
  return [...ROLES, ...custom.map(({ id }) => id)].filter((role) => {
    const held = permissionsOf(role, custom);
    return needed.every((permission) => held.includes(permission));
  });
}

/** Names of roles, for messages. */
export function describeRoles(roles: readonly Role[], custom: readonly CustomRole[]): string {
  return roles.map((role) => custom.find(({ id }) => id === role)?.name ?? role).join(", ");
}

/** An account whose permissions are checked. */
export interface Subject {
  readonly account: Pick<AccountRecord, "id" | "role">;
  readonly memberships: readonly Pick<Membership, "teamId" | "role">[];
  /** The account's role if it is a custom one. */
  readonly customRole?: CustomRole | undefined;
  /** The key by which the account acts: it allows nothing beyond its permissions. */
  readonly adminKey?: Pick<AdminKeyRecord, "permissions"> | undefined;
}

/** The account's built-in role, or the base of its custom role; `viewer` for a custom role that was removed. */
function baseOf({ account: { role }, customRole }: Subject): BuiltInRole {
  return baseOfRole(role, customRole === undefined ? [] : [customRole]);
}

function baseOfRole(role: Role, custom: readonly CustomRole[]): BuiltInRole {
  if (!isCustom(role)) return role;
  return custom.find(({ id }) => id === role)?.base ?? "viewer";
}

/** Whether a role makes its holders only viewers in their own account and in teams. */
export function isViewerRole(role: Role, custom: readonly CustomRole[]): boolean {
  return baseOfRole(role, custom) === "viewer";
}

/** Whether the subject may make or change a role with this base: a viewer cannot make a role based on developers. */
export function reachesBase(subject: Subject, base: CustomRole["base"]): boolean {
  return base === "viewer" || baseOf(subject) !== "viewer";
}

/** Whether the permissions of the administration key, if there is one, include this one. */
function isInKey({ adminKey }: Subject, permission: Permission): boolean {
  return adminKey === undefined || adminKey.permissions.includes(permission);
}

/** Whether the role allows this permission in all accounts, or for the installation. */
export function permitsEverywhere(subject: Subject, permission: Permission): boolean {
  const { account, customRole } = subject;
  return (
    isInKey(subject, permission) &&
    permissionsOf(account.role, customRole === undefined ? [] : [customRole]).includes(permission)
  );
}

/** Whether the subject has a permission in an account. */
export function permitsIn(subject: Subject, permission: Permission, accountId: string): boolean {
  if (permitsEverywhere(subject, permission)) return true;
  if (!isInKey(subject, permission)) return false;
  const { account, memberships } = subject;
  const base = baseOf(subject);
  if (account.id === accountId) return ROLE_PERMISSIONS[base].own.includes(permission);
  const membership = memberships.find(({ teamId }) => teamId === accountId);
  if (membership === undefined || !TEAM_PERMISSIONS[membership.role].includes(permission)) return false;
  return base !== "viewer" || READING.includes(permission);
}

/** The accounts in which the subject has a permission: its own and its teams. Undefined for all accounts. */
export function accountsWith(subject: Subject, permission: Permission): readonly string[] | undefined {
  if (permitsEverywhere(subject, permission)) return undefined;
  const ids = [subject.account.id, ...subject.memberships.map(({ teamId }) => teamId)];
  return ids.filter((id) => permitsIn(subject, permission, id));
}

/** Whether the subject has a permission in any account. */
export function permitsSomewhere(subject: Subject, permission: Permission): boolean {
  return accountsWith(subject, permission)?.length !== 0;
}

/**
 * What the subject lacks to give or take a role in a team: the first permission of the role that it does not have there.
 * Undefined: nothing. `playground.use` is not compared: members with a team's keys can call models anyway.
 */
export function missingForTeamRole(subject: Subject, role: TeamRole, teamId: string): Permission | undefined {
  return TEAM_PERMISSIONS[role].find(
    (permission) => PERMISSIONS_EVERYWHERE.includes(permission) && !permitsIn(subject, permission, teamId),
  );
}

/** The failure for a call that needs a permission which the subject does not have. */
export function lacks(subject: Subject, permission: Permission): Failure {
  if (!isInKey(subject, permission))
    return new Failure(
      "permission_denied",
      `This administration key does not have the permission ${permission}. Make a key that has it.`,
    );
  const { account, customRole } = subject;
  return new Failure(
    "permission_denied",
    `The role ${customRole?.name ?? account.role} does not allow this: it needs the permission ${permission} here. Ask an administrator.`,
  );
}

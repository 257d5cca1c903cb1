import { Failure } from "../core/failure.ts";
import type { AccountRecord, Role } from "./account-store.ts";
import type { Membership, TeamRole } from "./team-store.ts";

/** What one can be allowed to do in the dashboard. Those of an account's keys, usage and requests are held in accounts, the others everywhere. */
export const PERMISSIONS = [
  "keys.read",
  "keys.write",
  "keys.restrict",
  "usage.read",
  "requests.read",
  "audit.read",
  "alerts.read",
  "alerts.write",
  "alerts.manage",
  "routing.read",
  "routing.write",
  "playground.use",
  "profile.write",
  "members.read",
  "members.write",
  "teams.write",
  "accounts.read",
  "accounts.write",
  "owners.write",
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
  "playground.use",
  "profile.write",
];

/** What a role allows: in all accounts and for the installation, and in the person's own account. */
interface RolePermissions {
  readonly everywhere: readonly Permission[];
  readonly own: readonly Permission[];
}

/** A key in the playground spends its account's money, so no role allows those of everybody. */
const ALL = PERMISSIONS.filter((permission) => permission !== "playground.use");

const ROLE_PERMISSIONS: Readonly<Record<Role, RolePermissions>> = {
  owner: { everywhere: ALL, own: OWN },
  administrator: { everywhere: ALL.filter((permission) => permission !== "owners.write"), own: OWN },
  developer: { everywhere: [], own: OWN },
  viewer: { everywhere: [], own: READING },
};

/** What a member of a team may do in the team's account; a viewer of the organisation only reads. */
const TEAM_PERMISSIONS: Readonly<Record<TeamRole, readonly Permission[]>> = {
  maintainer: [...OWN, "members.write"],
  developer: [...READING, "keys.write", "alerts.write", "playground.use"],
  viewer: READING,
};

/** All roles of members, the one with most permissions first. */
export const TEAM_ROLES = Object.keys(TEAM_PERMISSIONS) as readonly TeamRole[];

/** All roles, the one with most permissions first. */
export const ROLES = Object.keys(ROLE_PERMISSIONS) as readonly Role[];

/** The roles that allow it in all accounts, or for the installation. */
export function rolesWith(permission: Permission): readonly Role[] {
  return ROLES.filter((role) => ROLE_PERMISSIONS[role].everywhere.includes(permission));
}

/** Whose permissions are asked for. */
export interface Subject {
  readonly account: Pick<AccountRecord, "id" | "role">;
  readonly memberships: readonly Pick<Membership, "teamId" | "role">[];
}

/** Whether the role allows it in all accounts, or for the installation. */
export function permitsEverywhere({ account }: Subject, permission: Permission): boolean {
  return ROLE_PERMISSIONS[account.role].everywhere.includes(permission);
}

/** Whether the subject has a permission in an account. */
export function permitsIn(subject: Subject, permission: Permission, accountId: string): boolean {
  if (permitsEverywhere(subject, permission)) return true;
  const { account, memberships } = subject;
  if (account.id === accountId) return ROLE_PERMISSIONS[account.role].own.includes(permission);
  const membership = memberships.find(({ teamId }) => teamId === accountId);
  if (membership === undefined || !TEAM_PERMISSIONS[membership.role].includes(permission)) return false;
  return account.role !== "viewer" || READING.includes(permission);
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

/** The failure for a call that needs a permission which the subject does not have. */
export function lacks({ account }: Subject, permission: Permission): Failure {
  return new Failure(
    "permission_denied",
    `The role ${account.role} does not allow this: it needs the permission ${permission} here. Ask an administrator.`,
  );
}

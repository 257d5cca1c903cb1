import { Failure } from "../core/failure.ts";
import type { AccountRecord, Role } from "./account-store.ts";

/** What one can be allowed to do in the dashboard. Those of an account's keys, usage and requests are held in accounts, the others everywhere. */
export const PERMISSIONS = [
  "keys.read",
  "keys.write",
  "keys.restrict",
  "usage.read",
  "requests.read",
  "events.read",
  "routing.read",
  "routing.write",
  "playground.use",
  "profile.write",
  "accounts.read",
  "accounts.write",
  "owners.write",
  "configuration.read",
  "configuration.write",
  "models.test",
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** Permissions that change nothing and spend nothing. */
const READING: readonly Permission[] = ["keys.read", "usage.read", "requests.read", "events.read", "routing.read"];

/** Permissions of a person in the account that has its own keys. */
const OWN: readonly Permission[] = [...READING, "keys.write", "routing.write", "playground.use", "profile.write"];

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

/** All roles, the one with most permissions first. */
export const ROLES = Object.keys(ROLE_PERMISSIONS) as readonly Role[];

/** The roles that allow it in all accounts, or for the installation. */
export function rolesWith(permission: Permission): readonly Role[] {
  return ROLES.filter((role) => ROLE_PERMISSIONS[role].everywhere.includes(permission));
}

/** Whose permissions are asked for. */
export interface Subject {
  readonly account: Pick<AccountRecord, "id" | "role">;
}

/** Whether the role allows it in all accounts, or for the installation. */
export function permitsEverywhere({ account }: Subject, permission: Permission): boolean {
  return ROLE_PERMISSIONS[account.role].everywhere.includes(permission);
}

/** Whether the subject has a permission in an account. */
export function permitsIn(subject: Subject, permission: Permission, accountId: string): boolean {
  if (permitsEverywhere(subject, permission)) return true;
  const { account } = subject;
  return account.id === accountId && ROLE_PERMISSIONS[account.role].own.includes(permission);
}

/** Whether the subject has a permission in any account. */
export function permitsSomewhere(subject: Subject, permission: Permission): boolean {
  return permitsIn(subject, permission, subject.account.id);
}

/** The failure for a call that needs a permission which the subject does not have. */
export function lacks({ account }: Subject, permission: Permission): Failure {
  return new Failure(
    "permission_denied",
    `The role ${account.role} does not allow this: it needs the permission ${permission}. Ask an administrator.`,
  );
}

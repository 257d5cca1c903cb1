import type { Permission } from "./permissions.ts";

/** The ID of a role that an owner has made: `role_` and random characters. */
export type CustomRoleId = `role_${string}`;

/** A role that an owner has made. */
export interface CustomRole {
  readonly id: CustomRoleId;
  /** Unique without regard to upper and lower case. */
  readonly name: string;
  /** Permissions in all accounts and for the installation. */
  readonly permissions: readonly Permission[];
  /** The role whose permissions it has in the person's own account and, as their limit, in teams. */
  readonly base: "developer" | "viewer";
  /** Unix milliseconds. */
  readonly createdAtMs: number;
}

/** The store of roles. Every method answers, or rejects within a few seconds. */
export interface RoleStore {
  /** By name. */
  roles(): Promise<readonly CustomRole[]>;
  /** Not done beyond `most` roles, and when another one has the name. */
  insertRole(role: CustomRole, most: number): Promise<"done" | "name taken" | "too many">;
  changeRole(role: CustomRole): Promise<"done" | "name taken" | "unknown role">;
  /** Removes a role that no account and no unused invitation has. Answers how many accounts and unused invitations have it. */
  removeRole(id: CustomRoleId): Promise<number>;
}

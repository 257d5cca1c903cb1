import type { Role } from "../account-store.ts";
import { isCustom } from "../permissions.ts";
import type { Person } from "./person.ts";
import { OidcRefusal } from "./refusal.ts";

/** Rules that give a person a role. */
export interface RoleRules {
  /** Roles by groups. Without any, the role is only that of a new account: administrators change it later. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Role of people without such a group; `none`: they are refused. */
  readonly defaultRole: Role | "none";
}

/** Roles from the one that may do the most. */
const BY_RIGHTS = ["owner", "administrator", "custom", "developer", "viewer"];

function rankOf(role: Role): number {
  return BY_RIGHTS.indexOf(isCustom(role) ? "custom" : role);
}

/**
 * The role of a person: of several, the one with the most rights; of several custom ones the first of the configuration. Throws an
 * `OidcRefusal` for one without.
 */
export function roleOf({ groups = [], omitsGroups }: Person, { roles, defaultRole }: RoleRules): Role {
  if (omitsGroups && roles.size > 0) throw new OidcRefusal("too_many_groups");
  const given = [...roles].flatMap(([group, each]) => (groups.includes(group) ? [each] : []));
  const [role] = given.toSorted((one, other) => rankOf(one) - rankOf(other));
  if (role !== undefined) return role;
  if (defaultRole === "none") throw new OidcRefusal("no_role");
  return defaultRole;
}

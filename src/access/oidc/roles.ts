import type { Role } from "../account-store.ts";
import type { Person } from "./person.ts";
import { OidcRefusal } from "./refusal.ts";

/** Which role somebody gets. */
export interface RoleRules {
  /** Roles by groups. Without any, the role is only that of a new account: administrators change it later. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Role of people without such a group; `none`: they are refused. */
  readonly defaultRole: Role | "none";
}

/** Roles from the one that may do the most. */
const BY_RIGHTS: readonly Role[] = ["owner", "administrator", "developer", "viewer"];

/** The role of a person: of several, the one with the most rights. Throws an `OidcRefusal` for one without. */
export function roleOf({ groups = [], omitsGroups }: Person, { roles, defaultRole }: RoleRules): Role {
  if (omitsGroups && roles.size > 0) throw new OidcRefusal("too_many_groups");
  const given = new Set(groups.map((group) => roles.get(group)));
  const role = BY_RIGHTS.find((each) => given.has(each));
  if (role !== undefined) return role;
  if (defaultRole === "none") throw new OidcRefusal("no_role");
  return defaultRole;
}

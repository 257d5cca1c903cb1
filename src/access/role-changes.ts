import { Failure, invalidField } from "../core/failure.ts";
import type { AccountStore, Role } from "./account-store.ts";
import type { Actor } from "./accounts.ts";
import { describeRoles, isCustom, isViewerRole, type Permission, permissionsOf, rolesWith } from "./permissions.ts";

/**
 * The roles that may change an account's role from `before` to `after`: those with all permissions of both, so that no
 * account gives or takes permissions that it does not have. A role with the base of viewers cannot give one with the base of
 * developers. Throws `permission_denied` for an administration key with fewer permissions, `invalid_request` for an unknown
 * `after`.
 */
export async function rolesThatMayChange(
  store: Pick<AccountStore, "roles">,
  { before, after }: { readonly before?: Role; readonly after?: Role | undefined },
  { scope }: Pick<Actor, "scope">,
): Promise<{ readonly roles: readonly Role[]; readonly names: string }> {
  const custom = await store.roles();
  if (after !== undefined && isCustom(after) && !custom.some(({ id }) => id === after))
    throw invalidField("role", "does not exist");
  const concerned = [before, after].flatMap((role) => (role === undefined ? [] : permissionsOf(role, custom)));
  const needed: readonly Permission[] = ["accounts.write", ...concerned];
  const missing = scope && needed.find((permission) => !scope.includes(permission));
  if (missing !== undefined)
    throw new Failure(
      "permission_denied",
      `This administration key does not have the permission ${missing}, which the role has. Make a key that has it.`,
    );
  const mayGive = (role: Role): boolean =>
    after === undefined || isViewerRole(after, custom) || !isViewerRole(role, custom);
  const roles = rolesWith(needed, custom).filter(mayGive);
  return { roles, names: describeRoles(roles, custom) };
}

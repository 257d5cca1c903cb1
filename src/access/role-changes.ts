import { Failure, invalidField } from "../core/failure.ts";
import type { AccountStore, Role } from "./account-store.ts";
import type { Actor } from "./accounts.ts";
import { describeRoles, isCustom, isViewerRole, type Permission, permissionsOf, rolesWith } from "./permissions.ts";

/**
 * The roles that may take one role from an account and give it another: those that allow as much, so that nobody gives or takes what is
 * not their own. Viewers, and roles based on that, give no role that makes somebody more in the own account and in teams. Throws `permission_denied` for an administration key that has less, `invalid_request` for an unknown role to give.
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

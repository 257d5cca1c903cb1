import { Failure, invalidField } from "../core/failure.ts";
import { type Actor, withdrawInvitations } from "./accounts.ts";
import { readPermissions } from "./admin-keys.ts";
import { randomBase62 } from "./api-key.ts";
import type { AuditFields, AuditObject } from "./audit-entry.ts";
import { differenceOf } from "./audit-fields.ts";
import { checkName, isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";
import { permitsEverywhere, reachesBase, ROLES, type Subject } from "./permissions.ts";
import type { CustomRole } from "./role-store.ts";

const MAX_ROLES = 100;

type RoleContext = Pick<AccessContext, "store" | "clock" | "log">;

/** Fields of a new or changed role. */
export interface RoleRequest {
  readonly name: string;
  readonly permissions: readonly string[];
  readonly base: CustomRole["base"];
  /** Account that makes or changes the role. */
  readonly holder: Subject;
  readonly actor: Actor;
}

/**
 * Makes a role. Throws `invalid_request` for a name in use, permissions that the holder does not have, and beyond 100 roles; `permission_denied`
 * for the base of developers when the holder is a viewer in the own account.
 */
export async function createRole({ store, clock, log }: RoleContext, request: RoleRequest): Promise<CustomRole> {
  const role: CustomRole = { id: `role_${randomBase62(16)}`, ...checked(request), createdAtMs: clock.now() };
  const made = await store.insertRole(role, MAX_ROLES);
  if (made === "too many") throw invalidField("name", `there are ${MAX_ROLES} roles already; remove one first`);
  if (made === "name taken") throw nameTaken();
  await log.record({ action: "role_created", ...request.actor, object: objectOf(role), after: fieldsOf(role) });
  return role;
}

/** Changes a role of people who have it at once. Throws as `createRole`, and `invalid_request` for an unknown one. */
export async function changeRole(context: RoleContext, id: string, request: RoleRequest): Promise<CustomRole> {
  const { store, log } = context;
  const before = await findRole(context, id);
  requireWithin(before, request.holder);
  const role: CustomRole = { ...before, ...checked(request) };
  const changed = await store.changeRole(role);
  if (changed === "name taken") throw nameTaken();
  if (changed === "unknown role") throw unknownId("role", id);
  const difference = differenceOf(fieldsOf(before), fieldsOf(role));
  if (Object.keys(difference.after).length > 0)
    await log.record({ action: "role_updated", ...request.actor, object: objectOf(role), ...difference });
  if (allowsLess(role, before)) {
    const holders = (await store.list()).filter((account) => account.role === role.id);
    for (const holder of holders) await withdrawInvitations(context, holder.id, request.actor);
  }
  return role;
}

/** Whether a role allows less than before: those who have it may then have invited to roles that they can no longer give. */
function allowsLess({ permissions, base }: CustomRole, before: CustomRole): boolean {
  return base !== before.base || before.permissions.some((permission) => !permissions.includes(permission));
}

/** Removes a role. Throws `invalid_request`, with their number, while accounts or unused invitations have it. */
export async function removeRole(
  context: RoleContext,
  id: string,
  { holder, actor }: Pick<RoleRequest, "holder" | "actor">,
): Promise<void> {
  const { store, log } = context;
  const role = await findRole(context, id);
  requireWithin(role, holder);
  const inUse = await store.removeRole(role.id);
  if (inUse > 0)
    throw invalidField(
      "id",
      `the role is in use by ${inUse} ${inUse === 1 ? "account or invitation" : "accounts and invitations"}; give them another one first`,
    );
  await log.record({ action: "role_removed", ...actor, object: objectOf(role), before: fieldsOf(role) });
}

async function findRole({ store }: Pick<AccessContext, "store">, id: string): Promise<CustomRole> {
  const role = isId(id) ? (await store.roles()).find((each) => each.id === id) : undefined;
  if (role === undefined) throw unknownId("role", id);
  return role;
}

function checked({ name, permissions, base, holder }: RoleRequest): Pick<CustomRole, "name" | "permissions" | "base"> {
  const text = checkName(name.trim());
  if (ROLES.some((role) => role === text.toLowerCase())) throw invalidField("name", "is that of a built-in role");
  const chosen = readPermissions(permissions, holder);
  requireWithin({ permissions: chosen, base }, holder);
  return { name: text, permissions: chosen, base };
}

/**
 * Throws `permission_denied` for permissions that the holder does not have everywhere, and for a higher base: no account
 * gives permissions that it does not have.
 */
function requireWithin({ permissions, base }: Pick<CustomRole, "permissions" | "base">, holder: Subject): void {
  const missing = permissions.filter((permission) => !permitsEverywhere(holder, permission));
  if (missing.length > 0)
    throw new Failure("permission_denied", `You do not have these permissions yourself: ${missing.join(", ")}.`);
  if (!reachesBase(holder, base))
    throw new Failure(
      "permission_denied",
      "You are a viewer in your own account and in teams, so this role cannot make somebody a developer there. Choose viewer as its base.",
    );
}

function nameTaken(): Failure {
  return invalidField("name", "is that of another role");
}

function objectOf({ id }: CustomRole): AuditObject {
  return { kind: "role", id };
}

function fieldsOf({ name, permissions, base }: CustomRole): AuditFields {
  return { name, permissions, base };
}

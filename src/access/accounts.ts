import { Failure, invalidField } from "../core/failure.ts";
import type { Limits } from "../core/principal.ts";
import type { AccountChanges, AccountRecord, AccountStore, Role } from "./account-store.ts";
import { toEmail } from "./address.ts";
import type { AuditActor } from "./audit-entry.ts";
import { accountFields, differenceOf, setFields } from "./audit-fields.ts";
import type { AuditAction, NewEntry } from "./audit-log.ts";
import { checkLimits, checkName, isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";
import type { Permission } from "./permissions.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import { rolesThatMayChange } from "./role-changes.ts";
import { claim, nameFor, newAccount } from "./sign-up.ts";

type Administration = Pick<AccessContext, "store" | "clock" | "log">;

/** Actor of a change and its origin: an account's ID, undefined for the command line. */
export interface Actor {
  readonly actorId: string | undefined;
  /** The administration key by which the account acts, for the audit log. */
  readonly actor?: AuditActor | undefined;
  /** The permissions of this key. */
  readonly scope?: readonly Permission[] | undefined;
  readonly network: string | undefined;
  /** Its program, such as `Firefox on Linux`. */
  readonly client?: string | undefined;
}

/** The changes to make; absent fields stay. */
export interface AccountUpdate {
  readonly name?: string | undefined;
  readonly role?: Role | undefined;
  readonly disabled?: boolean | undefined;
  /** Replaces all its limits. */
  readonly limits?: Limits | undefined;
}

/**
 * Changes an account. Throws `permission_denied` when the actor's role allows less than the role before or after (an
 * administrator cannot change an owner), `invalid_request` for an unknown account or role, and when no owner would be left
 * who can sign in.
 */
export async function updateAccount(
  context: Administration,
  { id, update, actor }: { readonly id: string; readonly update: AccountUpdate; readonly actor: Actor },
): Promise<AccountRecord> {
  const { store, clock } = context;
  const before = await findAccount(store, id);
  const { changes, happened } = toChanges(before, update, clock.now());
  if (happened.length === 0) return before;
  const concernsRights = changes.role !== undefined || "disabledAtMs" in changes || changes.limits !== undefined;
  const given = { before: before.role, after: changes.role };
  const granting = concernsRights ? await rolesThatMayChange(store, given, actor) : undefined;
  const expected =
    granting !== undefined && actor.actorId !== undefined
      ? { role: before.role, actor: { id: actor.actorId, roles: granting.roles } }
      : undefined;
  if (!(await store.update(id, changes, expected)))
    throw new Failure("permission_denied", `This account can be changed by these roles: ${granting?.names}.`);
  const weakens = happened.some(({ action }) => action === "account_disabled" || action === "role_changed");
  if (weakens && !(await leavesOwner(store, before, changes))) throw lastOwner();
  if (changes.disabledAtMs !== undefined) await store.removeSessions(id);
  for (const entry of happened) await context.log.record({ ...entry, accountId: id, ...actor });
  if (weakens) await withdrawInvitations(context, id, actor);
  return { ...before, ...changes };
}

/**
 * Makes an account with a password. The first one takes over the default account and has to be an owner. Throws
 * `invalid_request` for invalid input.
 */
export async function createAccount(
  context: Pick<AccessContext, "store" | "clock" | "log" | "passwords">,
  request: {
    readonly email: string;
    readonly name: string | undefined;
    readonly role: Role;
    readonly password: string;
  },
): Promise<AccountRecord> {
  const { store, clock, log, passwords } = context;
  const email = toEmail(request.email);
  const name = nameFor(request.name, email);
  const password = toPassword(request.password);
  checkPassword(password, email);
  await requireFirstOwner(store, request.role);
  const newcomer = { email, name, passwordHash: await passwords.hash(password) };
  let account = await claim(context, newcomer);
  if (account === undefined) {
    account = newAccount(newcomer, request.role, clock.now());
    if (!(await store.insert(account))) throw invalidField("email", "already has an account");
  }
  await log.record({ action: "account_created", accountId: account.id, after: setFields(accountFields(account)) });
  return account;
}

/** Throws `invalid_request` for another role on an installation without an owner, who is needed to invite others. */
export async function requireFirstOwner(store: AccountStore, role: Role): Promise<void> {
  if (role === "owner" || (await store.isClaimed())) return;
  throw invalidField("role", "has to be owner for the first account (--role owner)");
}

/** Returns an account by its ID. Throws `invalid_request` for an unknown one. */
export async function findAccount(store: Pick<AccountStore, "find">, id: string): Promise<AccountRecord> {
  const account = isId(id) ? await store.find(id) : undefined;
  if (account === undefined) throw unknownId("account", id);
  return account;
}

/** Whether the account is an owner's who can sign in, with a password or at the provider. */
function isOwner({ role, email, disabledAtMs }: AccountRecord): boolean {
  return role === "owner" && email !== undefined && disabledAtMs === undefined;
}

/** Whether an owner is left after a change of an account; without one, the change is undone. */
export async function leavesOwner(
  store: AccountStore,
  before: AccountRecord,
  changes: AccountChanges,
): Promise<boolean> {
  if (!isOwner(before) || (await store.list()).some(isOwner)) return true;
  // Checked after the change, not before: of two owners who demote each other, at least one is refused.
  await store.update(before.id, undo(changes, before));
  return false;
}

/** The failure for a change that would leave no owner who can sign in. */
export function lastOwner(): Failure {
  return new Failure("invalid_request", "This is the last owner. Make another account an owner first.");
}

/** Removes unused invitations by an account that may no longer invite. */
export async function withdrawInvitations(
  { store, log }: Pick<AccessContext, "store" | "log">,
  accountId: string,
  actor: Pick<NewEntry, "actor" | "actorId" | "network" | "client">,
): Promise<void> {
  for (const { id, createdBy, usedAtMs } of await store.listInvitations()) {
    if (createdBy !== accountId || usedAtMs !== undefined || !(await store.removeInvitation(id))) continue;
    await log.record({ action: "invitation_revoked", object: { kind: "invitation", id }, ...actor });
  }
}

function undo(changes: AccountChanges, before: AccountRecord): AccountChanges {
  const fields = Object.keys(changes) as (keyof AccountChanges)[];
  return Object.fromEntries(fields.map((field) => [field, before[field]]));
}

function isSame(limits: Limits, others: Limits): boolean {
  const fields = Object.keys({ ...limits, ...others }) as (keyof Limits)[];
  return fields.every((field) => limits[field] === others[field]);
}

/** Returns the effective changes and their entries of the audit log. */
function toChanges(
  before: AccountRecord,
  { name, role, disabled, limits }: AccountUpdate,
  nowMs: number,
): { changes: AccountChanges; happened: Pick<NewEntry, "action" | "before" | "after">[] } {
  const happened: Pick<NewEntry, "action" | "before" | "after">[] = [];
  let changes: AccountChanges = {};
  const change = (next: AccountChanges, action: AuditAction): void => {
    changes = { ...changes, ...next };
    happened.push({ action, ...differenceOf(accountFields(before), accountFields({ ...before, ...next })) });
  };
  if (name !== undefined && name !== before.name) change({ name: checkName(name) }, "account_renamed");
  if (role !== undefined && before.kind !== "person")
    throw invalidField("role", `a ${before.kind} account has no role`);
  if (role !== undefined && role !== before.role) change({ role }, "role_changed");
  if (limits !== undefined && !isSame(limits, before.limits)) {
    change({ limits: checkLimits(limits) }, "limits_changed");
  }
  if (disabled === true && before.disabledAtMs === undefined) change({ disabledAtMs: nowMs }, "account_disabled");
  if (disabled === false && before.disabledAtMs !== undefined) change({ disabledAtMs: undefined }, "account_enabled");
  return { changes, happened };
}

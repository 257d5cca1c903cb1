import { Failure, invalidField } from "../core/failure.ts";
import type { Limits } from "../core/principal.ts";
import type { AccountChanges, AccountRecord, AccountStore, Role } from "./account-store.ts";
import { toEmail } from "./address.ts";
import { checkLimits, checkName, isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import type { SecurityEventType } from "./security-log.ts";
import { claim, nameFor, newAccount } from "./sign-up.ts";

type Administration = Pick<AccessContext, "store" | "clock" | "log">;

/** Who makes a change, and from where: an account's ID, undefined for the command line. */
export interface Actor {
  readonly actorId: string | undefined;
  readonly network: string | undefined;
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
 * Changes an account. Throws `invalid_request` for an unknown account, and when no administrator would be left who can sign
 * in.
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
  const expected = concernsRights && actor.actorId !== undefined ? { administrator: actor.actorId } : undefined;
  if (!(await store.update(id, changes, expected)))
    throw new Failure("permission_denied", "Only administrators can change this account.");
  const weakens = happened.some(({ type }) => type === "account_disabled" || type === "role_changed");
  if (weakens && isAdministrator(before) && !(await store.list()).some(isAdministrator)) {
    // Checked after the change, not before: of two administrators who demote each other, at least one is refused.
    await store.update(id, undo(changes, before));
    throw new Failure(
      "invalid_request",
      "This is the last administrator. Make another account an administrator first.",
    );
  }
  if (changes.disabledAtMs !== undefined) await store.removeSessions(id);
  if (weakens) await withdrawInvitations(store, id);
  for (const { type, details } of happened) await context.log.record({ type, accountId: id, ...actor, details });
  return { ...before, ...changes };
}

/**
 * Makes an account with a password. The first one takes over the default account and has to be an administrator. Throws
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
  await requireFirstAdministrator(store, request.role);
  const newcomer = { email, name, passwordHash: await passwords.hash(password) };
  let account = await claim(context, newcomer);
  if (account === undefined) {
    account = newAccount(newcomer, request.role, clock.now());
    if (!(await store.insert(account))) throw invalidField("email", "already has an account");
  }
  await log.record({ type: "account_created", accountId: account.id, details: { role: account.role } });
  return account;
}

/** Throws `invalid_request` for a member on an installation without an administrator, who is needed to invite others. */
export async function requireFirstAdministrator(store: AccountStore, role: Role): Promise<void> {
  if (role === "administrator" || (await store.isClaimed())) return;
  throw invalidField("role", "has to be administrator for the first account (--role administrator)");
}

/** Returns an account by its ID. Throws `invalid_request` for an unknown one. */
export async function findAccount(store: AccountStore, id: string): Promise<AccountRecord> {
  const account = isId(id) ? await store.find(id) : undefined;
  if (account === undefined) throw unknownId("account", id);
  return account;
}

/** Whether the account can sign in, with a password or at the provider, and administrate. */
function isAdministrator({ role, email, disabledAtMs }: AccountRecord): boolean {
  return role === "administrator" && email !== undefined && disabledAtMs === undefined;
}

/** Removes unused invitations by an account that may no longer invite. */
export async function withdrawInvitations(store: AccountStore, accountId: string): Promise<void> {
  for (const { id, createdBy, usedAtMs } of await store.listInvitations()) {
    if (createdBy === accountId && usedAtMs === undefined) await store.removeInvitation(id);
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

interface Change {
  readonly type: SecurityEventType;
  readonly details: Readonly<Record<string, string>>;
}

/** Returns the effective changes and their security events. */
function toChanges(
  before: AccountRecord,
  { name, role, disabled, limits }: AccountUpdate,
  nowMs: number,
): { changes: AccountChanges; happened: Change[] } {
  const happened: Change[] = [];
  let changes: AccountChanges = {};
  const change = (next: AccountChanges, type: SecurityEventType, details: Change["details"] = {}): void => {
    changes = { ...changes, ...next };
    happened.push({ type, details });
  };
  if (name !== undefined && name !== before.name) change({ name: checkName(name) }, "account_renamed");
  if (role !== undefined && role !== before.role) change({ role }, "role_changed", { from: before.role, to: role });
  if (limits !== undefined && !isSame(limits, before.limits)) {
    change({ limits: checkLimits(limits) }, "limits_changed");
  }
  if (disabled === true && before.disabledAtMs === undefined) change({ disabledAtMs: nowMs }, "account_disabled");
  if (disabled === false && before.disabledAtMs !== undefined) change({ disabledAtMs: undefined }, "account_enabled");
  return { changes, happened };
}

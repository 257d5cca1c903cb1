import { type RawBuilder, sql } from "kysely";
import type {
  AccountChanges,
  AccountRecord,
  InvitationRecord,
  CallerAccount,
  Role,
  SessionRecord,
  SignInMethod,
} from "../../access/account-store.ts";
import type { AdminKeyRecord } from "../../access/admin-key-store.ts";
import { isCustom, type Permission } from "../../access/permissions.ts";
import type { CustomRole, CustomRoleId } from "../../access/role-store.ts";
import type { TeamRole } from "../../access/team-store.ts";
import type { Limits } from "../../core/principal.ts";
import type {
  AccountRow,
  AdministrationKeyRow,
  CustomRoleRow,
  InvitationRow,
  LimitColumns,
  SessionRow,
} from "../schema.ts";

export function toAccountRow(record: AccountRecord): AccountRow {
  return {
    id: record.id,
    kind: record.kind,
    name: record.name,
    created_at_ms: record.createdAtMs,
    email: record.email ?? null,
    ...toRoleColumns(record.role),
    password_hash: record.passwordHash ?? null,
    disabled_at_ms: record.disabledAtMs ?? null,
    credentials: null,
    aliases: null,
    stops: null,
    ...toLimitColumns(record.limits),
  };
}

export function toAccountRecord(row: AccountRow): AccountRecord {
  return {
    id: row.id,
    kind: row.kind as AccountRecord["kind"],
    email: row.email ?? undefined,
    name: row.name,
    role: fromRoleColumns(row),
    passwordHash: row.password_hash ?? undefined,
    limits: fromLimitColumns(row),
    createdAtMs: row.created_at_ms,
    disabledAtMs: row.disabled_at_ms ?? undefined,
  };
}

/** Only the fields present in `changes`: `disabledAtMs: undefined` is present too, and enables the account. */
export function toChangedAccountColumns(changes: AccountChanges): Partial<AccountRow> {
  return {
    ...(changes.name !== undefined && { name: changes.name }),
    ...(changes.role !== undefined && toRoleColumns(changes.role)),
    ...("passwordHash" in changes && { password_hash: changes.passwordHash ?? null }),
    ...(changes.limits !== undefined && toLimitColumns(changes.limits)),
    ...("disabledAtMs" in changes && { disabled_at_ms: changes.disabledAtMs ?? null }),
  };
}

export function toSessionRow(session: SessionRecord, idToken?: string): SessionRow {
  return {
    hash: session.hash,
    account_id: session.accountId,
    created_at_ms: session.createdAtMs,
    last_seen_at_ms: session.lastSeenAtMs,
    authenticated_at_ms: session.authenticatedAtMs,
    network: session.network ?? null,
    browser: session.browser ?? null,
    method: session.method,
    id_token: idToken ?? null,
    second_factor: session.secondFactor === true ? 1 : null,
  };
}

export function toSessionRecord(row: Omit<SessionRow, "id_token">): SessionRecord {
  return {
    hash: row.hash,
    accountId: row.account_id,
    createdAtMs: row.created_at_ms,
    lastSeenAtMs: row.last_seen_at_ms,
    authenticatedAtMs: row.authenticated_at_ms,
    network: row.network ?? undefined,
    browser: row.browser ?? undefined,
    method: (row.method ?? "password") as SignInMethod,
    secondFactor: row.second_factor === 1 ? true : undefined,
  };
}

export function toInvitationRow(invitation: InvitationRecord): InvitationRow {
  return {
    id: invitation.id,
    hash: invitation.hash,
    email: invitation.email ?? null,
    ...toRoleColumns(invitation.role),
    created_by: invitation.createdBy,
    created_at_ms: invitation.createdAtMs,
    expires_at_ms: invitation.expiresAtMs,
    used_at_ms: invitation.usedAtMs ?? null,
    team_id: invitation.team?.teamId ?? null,
    team_role: invitation.team?.role ?? null,
  };
}

export function toInvitationRecord(row: InvitationRow): InvitationRecord {
  return {
    id: row.id,
    hash: row.hash,
    email: row.email ?? undefined,
    role: fromRoleColumns(row),
    ...(row.team_id !== null && { team: { teamId: row.team_id, role: row.team_role as TeamRole } }),
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
  };
}

/** The columns that hold a role. `role` is the nearest role that releases before exact roles know. */
type RoleColumns = Pick<AccountRow, "role" | "exact_role">;

export function toRoleColumns(role: Role): RoleColumns {
  const isExact = role === "owner" || role === "viewer" || isCustom(role);
  return {
    role: role === "owner" || role === "administrator" ? "administrator" : "member",
    exact_role: isExact ? role : null,
  };
}

/** A release before exact roles changes only `role`: `exact_role` counts where the two agree. */
function fromRoleColumns({ role, exact_role: exact }: RoleColumns): Role {
  if (role === "administrator") return exact === "owner" ? "owner" : "administrator";
  if (exact !== null && isCustom(exact as Role)) return exact as CustomRoleId;
  return exact === "viewer" ? "viewer" : "developer";
}

/** `fromRoleColumns` in SQL, for a row of `accounts` under this name in the query. */
export function roleOf(table: string): RawBuilder<Role> {
  const [role, exact] = [sql.ref(`${table}.role`), sql.ref(`${table}.exact_role`)];
  return sql`case
    when ${role} = 'administrator' then case when ${exact} = 'owner' then 'owner' else 'administrator' end
    when ${exact} = 'viewer' or ${exact} like 'role!_%' escape '!' then ${exact}
    else 'developer'
  end`;
}

export function toCustomRole(row: CustomRoleRow): CustomRole {
  return {
    id: row.id as CustomRoleId,
    name: row.name,
    permissions: JSON.parse(row.permissions) as Permission[],
    base: row.base as CustomRole["base"],
    createdAtMs: row.created_at_ms,
  };
}

export function toCustomRoleRow({ id, name, permissions, base, createdAtMs }: CustomRole): CustomRoleRow {
  return { id, name, permissions: JSON.stringify(permissions), base, created_at_ms: createdAtMs };
}

/** The columns of a custom role that an account is joined with; null without one. */
export interface JoinedRole {
  readonly role_name: string | null;
  readonly role_permissions: string | null;
  readonly role_base: string | null;
  readonly role_created_at_ms: number | null;
}

/** These columns of `custom_roles`. */
export const JOINED_ROLE = [
  "custom_roles.name as role_name",
  "custom_roles.permissions as role_permissions",
  "custom_roles.base as role_base",
  "custom_roles.created_at_ms as role_created_at_ms",
] as const;

/** The custom role of an account's row. */
export function toJoinedRole(row: JoinedRole & RoleColumns): Pick<CallerAccount, "customRole"> {
  const id = fromRoleColumns(row);
  const { role_name: name, role_permissions: permissions, role_base: base, role_created_at_ms: createdAtMs } = row;
  if (!isCustom(id) || name === null || permissions === null || base === null || createdAtMs === null) return {};
  return { customRole: toCustomRole({ id, name, permissions, base, created_at_ms: createdAtMs }) };
}

export function toAdminKey(row: AdministrationKeyRow): AdminKeyRecord {
  return {
    id: row.id,
    hash: row.hash,
    display: row.display,
    name: row.name,
    accountId: row.account_id,
    permissions: JSON.parse(row.permissions) as Permission[],
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    revokedAtMs: row.revoked_at_ms ?? undefined,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
  };
}

export function toAdminKeyRow(key: AdminKeyRecord): AdministrationKeyRow {
  return {
    id: key.id,
    hash: key.hash,
    display: key.display,
    name: key.name,
    account_id: key.accountId,
    permissions: JSON.stringify(key.permissions),
    created_at_ms: key.createdAtMs,
    expires_at_ms: key.expiresAtMs ?? null,
    revoked_at_ms: key.revokedAtMs ?? null,
    last_used_at_ms: key.lastUsedAtMs ?? null,
  };
}

/** The columns that hold the limits of a key or an account. */
export function toLimitColumns(limits: Limits): LimitColumns {
  return {
    requests_per_minute: limits.requestsPerMinute ?? null,
    tokens_per_minute: limits.tokensPerMinute ?? null,
    concurrent_requests: limits.concurrentRequests ?? null,
    monthly_budget_micro_usd: limits.monthlyBudgetMicroUsd ?? null,
  };
}

/** The limits of a key or an account. */
export function fromLimitColumns(row: LimitColumns): Limits {
  return {
    requestsPerMinute: row.requests_per_minute ?? undefined,
    tokensPerMinute: row.tokens_per_minute ?? undefined,
    concurrentRequests: row.concurrent_requests ?? undefined,
    monthlyBudgetMicroUsd: row.monthly_budget_micro_usd ?? undefined,
  };
}

import { type RawBuilder, sql } from "kysely";
import type {
  AccountChanges,
  AccountRecord,
  InvitationRecord,
  Role,
  SessionRecord,
  SignInMethod,
} from "../../access/account-store.ts";
import type { Limits } from "../../core/principal.ts";
import type { AccountRow, InvitationRow, LimitColumns, SessionRow } from "../schema.ts";

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
  };
}

export function toInvitationRecord(row: InvitationRow): InvitationRecord {
  return {
    id: row.id,
    hash: row.hash,
    email: row.email ?? undefined,
    role: fromRoleColumns(row),
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
  };
}

/** The columns that hold a role. `role` has a word that programs before exact roles know, of the nearest permissions. */
type RoleColumns = Pick<AccountRow, "role" | "exact_role">;

export function toRoleColumns(role: Role): RoleColumns {
  const isExact = role === "owner" || role === "viewer";
  return {
    role: role === "owner" || role === "administrator" ? "administrator" : "member",
    exact_role: isExact ? role : null,
  };
}

/** A program before exact roles changes only `role`: `exact_role` counts where the two agree. */
function fromRoleColumns({ role, exact_role: exact }: RoleColumns): Role {
  if (role === "administrator") return exact === "owner" ? "owner" : "administrator";
  return exact === "viewer" ? "viewer" : "developer";
}

/** The same of a row of `accounts`, under this name in the query. */
export function roleOf(table: string): RawBuilder<Role> {
  const [role, exact] = [sql.ref(`${table}.role`), sql.ref(`${table}.exact_role`)];
  return sql`case
    when ${role} = 'administrator' then case when ${exact} = 'owner' then 'owner' else 'administrator' end
    when ${exact} = 'viewer' then 'viewer'
    else 'developer'
  end`;
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

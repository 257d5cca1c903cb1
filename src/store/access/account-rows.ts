import type {
  AccountChanges,
  AccountRecord,
  InvitationRecord,
  Role,
  SessionRecord,
} from "../../access/account-store.ts";
import type { Limits } from "../../core/principal.ts";
import type { AccountRow, InvitationRow, LimitColumns, SessionRow } from "../schema.ts";

export function toAccountRow(record: AccountRecord): AccountRow {
  return {
    id: record.id,
    name: record.name,
    created_at_ms: record.createdAtMs,
    email: record.email ?? null,
    role: record.role,
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
    email: row.email ?? undefined,
    name: row.name,
    role: row.role as Role,
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
    ...(changes.role !== undefined && { role: changes.role }),
    ...("passwordHash" in changes && { password_hash: changes.passwordHash ?? null }),
    ...(changes.limits !== undefined && toLimitColumns(changes.limits)),
    ...("disabledAtMs" in changes && { disabled_at_ms: changes.disabledAtMs ?? null }),
  };
}

export function toSessionRow(session: SessionRecord): SessionRow {
  return {
    hash: session.hash,
    account_id: session.accountId,
    created_at_ms: session.createdAtMs,
    last_seen_at_ms: session.lastSeenAtMs,
    authenticated_at_ms: session.authenticatedAtMs,
    network: session.network ?? null,
    browser: session.browser ?? null,
  };
}

export function toSessionRecord(row: SessionRow): SessionRecord {
  return {
    hash: row.hash,
    accountId: row.account_id,
    createdAtMs: row.created_at_ms,
    lastSeenAtMs: row.last_seen_at_ms,
    authenticatedAtMs: row.authenticated_at_ms,
    network: row.network ?? undefined,
    browser: row.browser ?? undefined,
  };
}

export function toInvitationRow(invitation: InvitationRecord): InvitationRow {
  return {
    id: invitation.id,
    hash: invitation.hash,
    email: invitation.email ?? null,
    role: invitation.role,
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
    role: row.role as Role,
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    usedAtMs: row.used_at_ms ?? undefined,
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

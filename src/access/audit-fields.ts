import type { AttributionLimits } from "../core/attribution.ts";
import type { Limits } from "../core/principal.ts";
import type { AccountRecord } from "./account-store.ts";
import type { AuditFields } from "./audit-entry.ts";
import type { AuditAction, NewEntry } from "./audit-log.ts";
import type { KeyRecord } from "./key-store.ts";
import type { TeamRole } from "./team-store.ts";

/** Characters of a field's value as JSON. */
const MAX_VALUE_CHARS = 1_500;
/** Characters of all fields together, with their names: an entry stays for the whole retention. */
const MAX_CHARS = 2_000;

/**
 * Formats fields as a JSON text of at most `MAX_CHARS` characters. Replaces a value that is too long by its beginning and
 * its length; where that is not enough, all fields together.
 */
export function toFieldText(fields: AuditFields): string {
  const values = Object.keys(fields).length;
  for (const maxChars of [MAX_VALUE_CHARS, MAX_CHARS / (2 * values)]) {
    const text = shorten(fields, maxChars);
    if (text.length <= MAX_CHARS) return text;
  }
  return JSON.stringify(beginningOf(JSON.stringify(fields), MAX_CHARS - 100));
}

function shorten(fields: AuditFields, maxChars: number): string {
  const short = Object.entries(fields).map(([name, value]) => {
    const text = JSON.stringify(value) ?? "null";
    return [name, text.length <= maxChars ? value : beginningOf(text, maxChars)];
  });
  return JSON.stringify(Object.fromEntries(short));
}

/** Takes half of the characters, as each may need two in a JSON text. */
function beginningOf(text: string, maxChars: number): object {
  return { beginning: text.slice(0, maxChars / 2).toWellFormed(), characters: text.length };
}

/** The fields that differ, before and after. */
export function differenceOf(
  before: AuditFields,
  after: AuditFields,
): { readonly before: AuditFields; readonly after: AuditFields } {
  const names = Object.keys({ ...before, ...after }).filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  const only = (fields: AuditFields): AuditFields =>
    Object.fromEntries(names.map((name) => [name, fields[name] ?? null]));
  return { before: only(before), after: only(after) };
}

/** The fields that are set. */
export function setFields(fields: AuditFields): AuditFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** The fields of an account in audit entries, without its e-mail address and its password. Only people have a role. */
export function accountFields({ kind, name, role, disabledAtMs, limits }: AccountRecord): AuditFields {
  return {
    name,
    role: kind === "person" ? role : null,
    disabled: disabledAtMs !== undefined,
    ...limitFields(limits),
  };
}

/** The fields of a key in audit entries, without its secret. */
function keyFields(key: KeyRecord): AuditFields {
  return {
    name: key.name,
    models: key.models,
    capabilities: key.capabilities,
    ...limitFields(key.limits),
    ...attributionLimitFields(key.attributionLimits),
    limited_by_administrator: key.limitedByAdministrator,
    options: key.options,
    required_labels: key.requiredLabels,
    tags: key.tags,
    store_content: key.storesContent,
    expires_at: toIso(key.expiresAtMs),
    revoked_at: toIso(key.revokedAtMs),
    replaced_by: key.replacedBy ?? null,
  };
}

type KeyEntry = Pick<NewEntry, "action" | "accountId" | "object" | "before" | "after">;

/** The entry of a new key. */
export function newKeyEntry(key: KeyRecord): KeyEntry {
  return { ...keyEntry("key_created", key), after: setFields(keyFields(key)) };
}

/** The entry of a changed key. */
export function changedKeyEntry(action: AuditAction, before: KeyRecord, after: KeyRecord): KeyEntry {
  return { ...keyEntry(action, after), ...differenceOf(keyFields(before), keyFields(after)) };
}

/** The entry of a revoked key. */
export function revokedKeyEntry(key: Pick<KeyRecord, "id" | "accountId">, atMs: number): KeyEntry {
  return { ...keyEntry("key_revoked", key), before: { revoked_at: null }, after: { revoked_at: toIso(atMs) } };
}

/** The entries of a key with another owner: one for each account that they concern. */
export function transferredKeyEntries(
  id: string,
  { from, to, concerned = [from, to] }: { readonly from: string; readonly to: string; readonly concerned?: string[] },
): KeyEntry[] {
  return concerned.map((accountId) => ({
    ...keyEntry("key_transferred", { id, accountId }),
    before: { account: from },
    after: { account: to },
  }));
}

/** The entry of a changed member of a team: a role is undefined where the person is not a member. */
export function memberEntry(
  teamId: string,
  {
    member,
    before,
    after,
  }: { readonly member: string; readonly before?: TeamRole | undefined; readonly after?: TeamRole | undefined },
): Pick<NewEntry, "action" | "accountId" | "before" | "after" | "details"> {
  const action = before === undefined ? "member_added" : after === undefined ? "member_removed" : "member_changed";
  return {
    action,
    accountId: teamId,
    before: before && { role: before },
    after: after && { role: after },
    details: { member },
  };
}

function keyEntry(action: AuditAction, { id, accountId }: Pick<KeyRecord, "id" | "accountId">): KeyEntry {
  return { action, accountId, object: { kind: "key", id } };
}

function limitFields(limits: Limits): AuditFields {
  return {
    requests_per_minute: limits.requestsPerMinute ?? null,
    tokens_per_minute: limits.tokensPerMinute ?? null,
    concurrent_requests: limits.concurrentRequests ?? null,
    monthly_budget_micro_usd: limits.monthlyBudgetMicroUsd ?? null,
  };
}

function attributionLimitFields(limits: AttributionLimits = {}): AuditFields {
  return {
    end_user_requests_per_minute: limits.endUserRequestsPerMinute ?? null,
    end_user_tokens_per_minute: limits.endUserTokensPerMinute ?? null,
    end_user_budget_micro_usd: limits.endUserBudgetMicroUsd ?? null,
    end_user_budget_period: limits.endUserBudgetMicroUsd === undefined ? null : (limits.endUserBudgetPeriod ?? "day"),
    session_budget_micro_usd: limits.sessionBudgetMicroUsd ?? null,
    require_end_user: limits.requiresEndUser ?? null,
  };
}

/** A time as a field; null for none. */
export function toIso(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}

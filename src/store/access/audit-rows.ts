import type { ActorKind, AuditEntry, ObjectKind, UnchainedEntry } from "../../access/audit-entry.ts";
import type { AuditEntryRow } from "../schema.ts";

export function toAuditRow(entry: AuditEntry): AuditEntryRow {
  return {
    sequence: entry.sequence,
    at_ms: entry.atMs,
    action: entry.action,
    actor_kind: entry.actor.kind,
    actor_id: entry.actor.id ?? null,
    network: entry.network ?? null,
    client: entry.client ?? null,
    object_kind: entry.object?.kind ?? null,
    object_id: entry.object?.id ?? null,
    account_id: entry.accountId ?? null,
    result: entry.result,
    before_json: entry.before ?? null,
    after_json: entry.after ?? null,
    details: entry.details ?? null,
    hash: entry.hash,
  };
}

export function toAuditEntry(row: AuditEntryRow): AuditEntry {
  const { object_kind: kind, object_id: id } = row;
  return {
    sequence: row.sequence,
    hash: row.hash,
    atMs: row.at_ms,
    action: row.action,
    actor: { kind: row.actor_kind as ActorKind, id: row.actor_id ?? undefined },
    network: row.network ?? undefined,
    client: row.client ?? undefined,
    object: kind === null || id === null ? undefined : { kind: kind as ObjectKind, id },
    accountId: row.account_id ?? undefined,
    result: row.result as UnchainedEntry["result"],
    before: row.before_json ?? undefined,
    after: row.after_json ?? undefined,
    details: row.details ?? undefined,
  };
}

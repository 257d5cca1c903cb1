import type {
  AlertRecord,
  ChannelFilter,
  ChannelKind,
  ChannelRecord,
  DeliveryRecord,
  MessageKind,
  Rule,
  Severity,
} from "../../alerts/alert.ts";
import type { AlertChannelRow, AlertDeliveryRow, AlertRow } from "../schema.ts";

export function toAlert(row: AlertRow): AlertRecord {
  return {
    id: row.id,
    rule: row.rule as Rule,
    severity: row.severity as AlertRecord["severity"],
    subject: row.subject,
    period: row.period,
    accountId: row.account_id ?? undefined,
    title: row.title,
    detail: row.detail,
    openedAtMs: row.opened_at_ms,
    seenAtMs: row.seen_at_ms,
    resolvedAtMs: row.resolved_at_ms ?? undefined,
    acknowledgedAtMs: row.acknowledged_at_ms ?? undefined,
    acknowledgedBy: row.acknowledged_by ?? undefined,
    mutedUntilMs: row.muted_until_ms ?? undefined,
    mutedBy: row.muted_by ?? undefined,
  };
}

export function toChannel(row: AlertChannelRow): ChannelRecord {
  const { id, kind, name, target, sealed, created_at_ms, created_by, rules, least_severity } = row;
  const facts = { id, kind: kind as ChannelKind, name, target, sealed };
  return {
    ...facts,
    createdAtMs: created_at_ms,
    createdBy: created_by ?? undefined,
    rules: rules === null ? [] : (JSON.parse(rules) as Rule[]),
    leastSeverity: (least_severity ?? "warning") as Severity,
  };
}

export function toFilterColumns({
  rules,
  leastSeverity,
}: ChannelFilter): Pick<AlertChannelRow, "rules" | "least_severity"> {
  return { rules: rules.length === 0 ? null : JSON.stringify(rules), least_severity: leastSeverity };
}

export function toDelivery(row: AlertDeliveryRow): DeliveryRecord {
  return {
    id: row.id,
    alertId: row.alert_id ?? undefined,
    kind: row.kind as MessageKind,
    channelId: row.channel_id ?? undefined,
    recipient: row.recipient,
    createdAtMs: row.created_at_ms,
    attempts: row.attempts,
    nextAtMs: row.next_at_ms ?? undefined,
    sentAtMs: row.sent_at_ms ?? undefined,
    problem: row.problem,
  };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AlertChannel,
  type AlertChannelSchema,
  type AlertDeliverySchema,
  AlertRule,
  type AlertSchema,
  AlertSeverity,
  type AlertThresholds,
  type AlertThresholdsSchema,
  ChannelKind,
} from "../../../gen/parley/console/v1/alert_pb.js";
import type {
  AlertRecord,
  ChannelKind as Kind,
  ChannelRecord,
  DeliveryRecord,
  Rule,
  Severity,
} from "../../alerts/alert.ts";
import type { Thresholds } from "../../alerts/thresholds.ts";
import { invalidField } from "../../core/failure.ts";
import { optionalTime } from "./account-messages.ts";

const RULES: Readonly<Record<Rule, AlertRule>> = {
  budget: AlertRule.BUDGET,
  budget_forecast: AlertRule.BUDGET_FORECAST,
  end_user_budget: AlertRule.END_USER_BUDGET,
  error_rate: AlertRule.ERROR_RATE,
  latency: AlertRule.LATENCY,
  provider_down: AlertRule.PROVIDER_DOWN,
  key_expiring: AlertRule.KEY_EXPIRING,
  unusual_spend: AlertRule.UNUSUAL_SPEND,
  more_alerts: AlertRule.MORE_ALERTS,
};

const SEVERITIES: Readonly<Record<Severity, AlertSeverity>> = {
  warning: AlertSeverity.WARNING,
  critical: AlertSeverity.CRITICAL,
};

const KINDS: Readonly<Record<Kind, ChannelKind>> = {
  webhook: ChannelKind.WEBHOOK,
  slack: ChannelKind.SLACK,
  email: ChannelKind.EMAIL,
};

const MAX_DELIVERIES = 100;

/** An alert with the messages about it. */
export function toAlertMessage(
  alert: AlertRecord,
  deliveries: readonly DeliveryRecord[],
  nowMs: number,
): MessageInitShape<typeof AlertSchema> {
  const isMuted = (alert.mutedUntilMs ?? 0) > nowMs;
  return {
    id: alert.id,
    rule: RULES[alert.rule],
    severity: SEVERITIES[alert.severity],
    subject: alert.subject,
    accountId: alert.accountId ?? "",
    title: alert.title,
    detail: alert.detail,
    openTime: timestampFromMs(alert.openedAtMs),
    ...optionalTime("resolveTime", alert.resolvedAtMs),
    ...optionalTime("acknowledgeTime", alert.acknowledgedAtMs),
    acknowledgedBy: alert.acknowledgedBy ?? "",
    ...(isMuted && { ...optionalTime("muteUntil", alert.mutedUntilMs), mutedBy: alert.mutedBy ?? "" }),
    deliveries: deliveries
      .filter(({ alertId }) => alertId === alert.id)
      .slice(0, MAX_DELIVERIES)
      .map(toDeliveryMessage),
  };
}

function toDeliveryMessage(delivery: DeliveryRecord): MessageInitShape<typeof AlertDeliverySchema> {
  const { id, recipient, kind, attempts, sentAtMs, nextAtMs, problem } = delivery;
  return {
    id,
    recipient,
    aboutEnd: kind === "resolved",
    attempts,
    ...optionalTime("sendTime", sentAtMs),
    ...optionalTime("nextTime", nextAtMs),
    problem,
  };
}

/** A channel without its secrets. */
export function toChannelMessage(channel: ChannelRecord): MessageInitShape<typeof AlertChannelSchema> {
  const { id, kind, name, target, createdAtMs, createdBy = "", rules, leastSeverity } = channel;
  return {
    id,
    kind: KINDS[kind],
    name,
    target,
    createTime: timestampFromMs(createdAtMs),
    createdBy,
    rules: rules.map((rule) => RULES[rule]),
    leastSeverity: SEVERITIES[leastSeverity],
  };
}

/** Which alerts a channel of a request gets. Throws `invalid_request`. */
export function fromFilterMessage({
  rules,
  leastSeverity,
}: Pick<AlertChannel, "rules" | "leastSeverity">): Pick<ChannelRecord, "rules" | "leastSeverity"> {
  return {
    rules: rules.map((rule) => {
      if (rule === AlertRule.UNSPECIFIED) throw invalidField("rules", "must have at least one rule; empty for all");
      return keyOf(RULES, rule) ?? unknownValue("rules");
    }),
    leastSeverity:
      leastSeverity === AlertSeverity.UNSPECIFIED
        ? "warning"
        : (keyOf(SEVERITIES, leastSeverity) ?? unknownValue("least_severity")),
  };
}

function keyOf<K extends string, V>(values: Readonly<Record<K, V>>, value: V): K | undefined {
  return (Object.keys(values) as K[]).find((key) => values[key] === value);
}

function unknownValue(field: string): never {
  throw invalidField(field, "is not known to this version");
}

/** The kind of a request. Throws `invalid_request`. */
export function fromKindMessage(kind: ChannelKind): Kind {
  const found = keyOf(KINDS, kind);
  if (found !== undefined) return found;
  throw invalidField("kind", "must be CHANNEL_KIND_WEBHOOK, CHANNEL_KIND_SLACK or CHANNEL_KIND_EMAIL");
}

export function toThresholdsMessage(thresholds: Thresholds): MessageInitShape<typeof AlertThresholdsSchema> {
  return { ...thresholds, budgetPercent: [...thresholds.budgetPercent] };
}

/** The thresholds of a request. Throws `invalid_request` without any. */
export function fromThresholdsMessage(message: AlertThresholds | undefined): Thresholds {
  if (message === undefined) throw invalidField("thresholds", "is required");
  const { budgetPercent, keyExpiryDays, errorPercent, minRequests, latencyFactor, spendFactor, spendMinimumUsd } =
    message;
  return { budgetPercent, keyExpiryDays, errorPercent, minRequests, latencyFactor, spendFactor, spendMinimumUsd };
}

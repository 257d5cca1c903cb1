import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AlertChannelSchema,
  type AlertDeliverySchema,
  AlertRule,
  type AlertSchema,
  AlertSeverity,
  type AlertThresholds,
  type AlertThresholdsSchema,
  ChannelKind,
} from "../../../gen/parley/console/v1/alert_pb.js";
import type { AlertRecord, ChannelKind as Kind, ChannelRecord, DeliveryRecord, Rule } from "../../alerts/alert.ts";
import type { Thresholds } from "../../alerts/thresholds.ts";
import { invalidField } from "../../core/failure.ts";
import { optionalTime } from "./account-messages.ts";

const RULES: Readonly<Record<Rule, AlertRule>> = {
  budget: AlertRule.BUDGET,
  budget_forecast: AlertRule.BUDGET_FORECAST,
  error_rate: AlertRule.ERROR_RATE,
  latency: AlertRule.LATENCY,
  provider_down: AlertRule.PROVIDER_DOWN,
  key_expiring: AlertRule.KEY_EXPIRING,
  unusual_spend: AlertRule.UNUSUAL_SPEND,
  more_alerts: AlertRule.MORE_ALERTS,
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
    severity: alert.severity === "critical" ? AlertSeverity.CRITICAL : AlertSeverity.WARNING,
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
  const { id, kind, name, target, createdAtMs, createdBy = "" } = channel;
  return { id, kind: KINDS[kind], name, target, createTime: timestampFromMs(createdAtMs), createdBy };
}

/** The kind of a request. Throws `invalid_request`. */
export function fromKindMessage(kind: ChannelKind): Kind {
  const found = (Object.keys(KINDS) as Kind[]).find((each) => KINDS[each] === kind);
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

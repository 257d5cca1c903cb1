/** All rules that open alerts. */
export const RULES = [
  "budget",
  "budget_forecast",
  "end_user_budget",
  "error_rate",
  "latency",
  "provider_down",
  "key_expiring",
  "unusual_spend",
  "more_alerts",
] as const;

export type Rule = (typeof RULES)[number];

/** From the least one. */
export const SEVERITIES = ["warning", "critical"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** A condition that holds now. Texts have no secrets, prompts or answers. */
export interface Finding {
  readonly rule: Rule;
  readonly severity: Severity;
  /** Subject of the condition, such as `key:key_1`, `account:acct_1`, `model:alpha-haiku-4.5` or `provider:openai`. */
  readonly subject: string;
  /** Distinguishes alerts of the same rule and subject, such as `2026-11/80`; empty where there is one at a time. */
  readonly period: string;
  /** Account of the owner, who gets messages beside the administrators; undefined: administrators only. */
  readonly accountId: string | undefined;
  /** One line. */
  readonly title: string;
  /** A sentence or two with the figures. */
  readonly detail: string;
}

/** An alert as stored. All times are Unix milliseconds. */
export interface AlertRecord extends Finding {
  readonly id: string;
  readonly openedAtMs: number;
  /** The latest evaluation in which the condition held. */
  readonly seenAtMs: number;
  readonly resolvedAtMs: number | undefined;
  readonly acknowledgedAtMs: number | undefined;
  /** ID of the account that acknowledged it. */
  readonly acknowledgedBy: string | undefined;
  /** Until then nothing is sent about this rule and subject. */
  readonly mutedUntilMs: number | undefined;
  readonly mutedBy: string | undefined;
}

/** Identity of a finding: findings with the same one are about one condition. */
export function identityOf({ rule, subject, period }: Finding): string {
  return JSON.stringify([rule, subject, period] satisfies [Rule, string, string]);
}

/** How long the condition of an alert must not have held before the alert is resolved. 0: the next evaluation resolves it. */
export const RESOLVE_AFTER_MS: Readonly<Record<Rule, number>> = {
  budget: 0,
  end_user_budget: 0,
  key_expiring: 0,
  budget_forecast: 60 * 60_000,
  error_rate: 10 * 60_000,
  latency: 10 * 60_000,
  // More than two evaluations: each process has its own view of providers and reports it once a minute.
  provider_down: 150_000,
  unusual_spend: 2 * 60 * 60_000,
  more_alerts: 60 * 60_000,
};

/** Rules that also send a message when an alert is resolved: those of outages. */
export const TELLS_END: ReadonlySet<Rule> = new Set(["error_rate", "latency", "provider_down"]);

/** Where alerts are sent to. */
export type ChannelKind = "webhook" | "slack" | "email";

/** Which alerts a channel gets. */
export interface ChannelFilter {
  /** Empty: those of all rules. */
  readonly rules: readonly Rule[];
  readonly leastSeverity: Severity;
}

/** Whether a channel gets the messages about a finding. */
export function isWanted({ rules, leastSeverity }: ChannelFilter, { rule, severity }: Finding): boolean {
  const isSevere = SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(leastSeverity);
  return isSevere && (rules.length === 0 || rules.includes(rule));
}

export interface ChannelRecord extends ChannelFilter {
  readonly id: string;
  readonly kind: ChannelKind;
  readonly name: string;
  /** For people: the origin of an address, or e-mail addresses. Not secret. */
  readonly target: string;
  /** `ChannelSecrets`, encrypted. */
  readonly sealed: string;
  readonly createdAtMs: number;
  /** ID of an account; undefined for the command line. */
  readonly createdBy: string | undefined;
}

/** The secret part of a channel. */
export interface ChannelSecrets {
  /** Address of a webhook or of Slack, which is all that posting to it needs. */
  readonly url?: string;
  /** Key of a webhook's signatures: `whsec_…`. */
  readonly signingKey?: string;
  /** E-mail addresses. */
  readonly recipients?: readonly string[];
}

/** Why a message is sent. */
export type MessageKind = "opened" | "resolved" | "test";

/** A message to one receiver. */
export interface DeliveryRecord {
  readonly id: string;
  /** Undefined for a test. */
  readonly alertId: string | undefined;
  readonly kind: MessageKind;
  /** Undefined for an e-mail to an owner or administrator. */
  readonly channelId: string | undefined;
  /** Name of the channel, or the e-mail address. */
  readonly recipient: string;
  readonly createdAtMs: number;
  /** Number of attempts to send that have begun. */
  readonly attempts: number;
  /** Time of the next attempt; undefined after the last one. */
  readonly nextAtMs: number | undefined;
  readonly sentAtMs: number | undefined;
  /** Why the latest attempt failed; empty if none did. */
  readonly problem: string;
}

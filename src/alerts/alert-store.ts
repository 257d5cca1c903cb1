import type { AlertRecord, ChannelFilter, ChannelRecord, DeliveryRecord, Finding } from "./alert.ts";
import type { Thresholds } from "./thresholds.ts";

/** Limit of open alerts; further ones are opened when others are resolved. */
export const MAX_OPEN = 5_000;

/** Filter and page of a list of alerts. */
interface AlertQuery {
  /** Undefined: alerts of all accounts, and those for administrators only. */
  readonly accountIds: readonly string[] | undefined;
  readonly isOpen: boolean;
  readonly limit: number;
  /** The last alert of the page before, by the time it was opened. */
  readonly before: { readonly openedAtMs: number; readonly id: string } | undefined;
}

/** A receiver of a message. */
export type Receiver = Pick<DeliveryRecord, "channelId" | "recipient">;

/** Changes that an evaluation makes. */
export interface AlertChanges {
  readonly nowMs: number;
  /** IDs of alerts whose condition still holds, for their `seenAtMs`. */
  readonly seen: readonly string[];
  readonly open: readonly { readonly finding: Finding; readonly receivers: readonly Receiver[] }[];
  /** Resolved unless another process has seen them meanwhile. */
  readonly resolve: readonly { readonly alert: AlertRecord; readonly receivers: readonly Receiver[] }[];
}

/** The store of alerts. Every method answers, or rejects within a few seconds. Safe for several processes at once. */
export interface AlertStore {
  /** Unix time of the clock that all processes share. */
  nowMs(): Promise<number>;
  /** True for one of the processes that call it within `everyMs`. */
  claimEvaluation(nowMs: number, everyMs: number): Promise<boolean>;
  /** All open alerts, at most MAX_OPEN. */
  open(): Promise<readonly AlertRecord[]>;
  /** Alerts of these accounts opened since `sinceMs`, resolved or not, without `more_alerts`; omits unknown accounts. */
  openings(accountIds: readonly string[], sinceMs: number): Promise<ReadonlyMap<string, Openings>>;
  /** Opens, continues and resolves alerts, each once whichever processes do the same, and plans the messages about them. */
  apply(changes: AlertChanges): Promise<{ readonly opened: number; readonly resolved: number }>;
  /** Latest first. */
  list(query: AlertQuery): Promise<readonly AlertRecord[]>;
  find(id: string): Promise<AlertRecord | undefined>;
  /** Open alerts that are neither acknowledged nor muted. */
  countActive(query: { readonly accountIds: readonly string[] | undefined; readonly nowMs: number }): Promise<number>;
  /** False for an alert that is resolved, or acknowledged already. */
  acknowledge(id: string, by: { readonly accountId: string; readonly atMs: number }): Promise<boolean>;
  /** Mutes the rule and subject of an alert until `untilMs`, and drops messages that wait; undefined ends the mute. */
  mute(id: string, by: { readonly accountId: string; readonly untilMs: number | undefined }): Promise<void>;
  /** Messages about these alerts, oldest first. */
  deliveries(alertIds: readonly string[]): Promise<readonly DeliveryRecord[]>;
  /** Plans a message and claims it: the caller sends it. */
  beginTest(channel: Pick<ChannelRecord, "id" | "name">, nowMs: number): Promise<DeliveryRecord>;
  /** Channels with messages that are due; undefined stands for e-mail to people. */
  dueChannels(nowMs: number): Promise<readonly (string | undefined)[]>;
  /** Claims messages of a channel, or to people, that are due: no other process gets them before `untilMs`. */
  claimDeliveries(due: {
    readonly channelId: string | undefined;
    readonly nowMs: number;
    readonly untilMs: number;
    readonly limit: number;
  }): Promise<readonly DeliveryRecord[]>;
  /** Records the outcome of an attempt to send. `nextAtMs` undefined: there is no further attempt. */
  endDelivery(id: string, outcome: Pick<DeliveryRecord, "nextAtMs" | "sentAtMs" | "problem">): Promise<void>;
  /** E-mail addresses of the enabled administrators, and of these accounts if they are enabled, by account. */
  addresses(accountIds: readonly string[]): Promise<Addresses>;
  channels(): Promise<readonly ChannelRecord[]>;
  /** False when there are `most` channels already. */
  insertChannel(channel: ChannelRecord, most: number): Promise<boolean>;
  /** False for an unknown one. Messages that wait are sent, also those that its new filter excludes. */
  changeChannel(id: string, changes: ChannelFilter & Pick<ChannelRecord, "name">): Promise<boolean>;
  /** Its waiting messages are dropped. */
  removeChannel(id: string): Promise<boolean>;
  /** Encrypts the secrets of all channels again with `seal`; a channel for which it returns undefined stays. */
  resealChannels(seal: (channel: ChannelRecord) => string | undefined): Promise<{
    readonly resealed: number;
    readonly unreadable: number;
  }>;
  /** The thresholds that are set in the dashboard. */
  thresholds(): Promise<Partial<Thresholds>>;
  /** Sets these thresholds; undefined restores a default. */
  setThresholds(values: { readonly [K in keyof Thresholds]?: Thresholds[K] | undefined }): Promise<void>;
  /** Removes resolved alerts with their messages, at most a thousand; returns their number. */
  prune(beforeMs: number): Promise<number>;
}

/** Alerts of an account that were opened in some time. */
export interface Openings {
  /** Name of the account. */
  readonly name: string;
  readonly count: number;
}

interface Addresses {
  readonly administrators: readonly string[];
  /** By account ID. */
  readonly owners: ReadonlyMap<string, string>;
}

/**
 * Facts that the rules read from the database. They are those of at most `ofAccount` keys of each account, the most
 * important of all accounts first, so that the keys of one account do not displace those of others. Keys and accounts with
 * an open alert of the rule come before others, all of them, so that the alert is not resolved because of a limit.
 */
export interface AlertFacts {
  /** Keys and accounts that have spent at least this share of their budget in the month, the largest share first. */
  budgets(query: BudgetQuery): Promise<readonly BudgetFact[]>;
  /** Keys of which an end user has spent at least the lowest of these shares of its budget in the present period. */
  endUserBudgets(query: EndUserBudgetQuery): Promise<readonly EndUserBudgetFact[]>;
  /** Keys without a successor that expire before `untilMs`, the next to expire first. */
  expiringKeys(
    query: {
      readonly nowMs: number;
      readonly untilMs: number;
    } & FactLimits,
  ): Promise<readonly ExpiryFact[]>;
  /** Requests of whole minutes by model. */
  modelTraffic(span: FactSpan): Promise<readonly TrafficFact[]>;
  /**
   * Requests of whole minutes by key, for keys with at least `minRequests` of which at least `errorPercent` failed or were
   * refused, the most errors first.
   */
  keyTraffic(
    span: FactSpan & FactLimits & { readonly minRequests: number; readonly errorPercent: number },
  ): Promise<readonly (TrafficFact & KeyFact)[]>;
  /** 95th percentile of the time to answer by model, of the latest 50,000 completions of this time that were served. */
  latencies(span: FactSpan): Promise<readonly LatencyFact[]>;
  /** Accounts that spent at least `minMicroUsd` in the hour, with what they spent in this hour of the days before. */
  hourlySpend(query: SpendQuery): Promise<readonly SpendFact[]>;
}

interface FactLimits {
  readonly ofAccount: number;
  readonly limit: number;
}

interface FactSpan {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export interface BudgetQuery extends FactLimits {
  readonly nowMs: number;
  /** `2026-11`. */
  readonly month: string;
  readonly share: number;
  /** Budget of accounts without their own; undefined: none. */
  readonly defaultMicroUsd: number | undefined;
  /** Start of the time whose cost is `recentMicroUsd`. */
  readonly recentSinceMs: number;
}

/** A key, or an account itself. */
export interface KeyFact {
  readonly keyId: string | undefined;
  readonly accountId: string;
  /** Name of the key, or of the account. */
  readonly name: string;
}

export interface BudgetFact extends KeyFact {
  readonly spentMicroUsd: number;
  readonly budgetMicroUsd: number;
  readonly recentMicroUsd: number;
}

export interface EndUserBudgetQuery extends FactLimits {
  readonly nowMs: number;
  /** Shares of a budget, ascending; at least one. */
  readonly percents: readonly number[];
}

export interface EndUserBudgetFact extends KeyFact {
  /** The day or month of the budget, by `periodAt`. */
  readonly period: string;
  /** Budget of each end user. */
  readonly budgetMicroUsd: number;
  /** Numbers of end users that have spent each share, in the order of the query. */
  readonly reached: readonly { readonly percent: number; readonly endUsers: number }[];
}

export interface ExpiryFact extends KeyFact {
  readonly expiresAtMs: number;
}

export interface TrafficFact {
  /** Model or key ID. */
  readonly group: string;
  readonly completions: number;
  /** Completions that failed, without those that their callers ended. */
  readonly failed: number;
  readonly refused: number;
}

export interface LatencyFact {
  readonly model: string;
  readonly served: number;
  readonly p95Ms: number;
}

interface SpendQuery {
  /** Start of the hour. */
  readonly hourMs: number;
  readonly minMicroUsd: number;
  readonly days: number;
  readonly limit: number;
}

export interface SpendFact {
  readonly accountId: string;
  readonly name: string;
  readonly spentMicroUsd: number;
  /** In the same hour of each of the days before; hours without spending are 0. */
  readonly beforeMicroUsd: readonly number[];
  /** Start of the first hour ever counted. */
  readonly firstHourMs: number;
}

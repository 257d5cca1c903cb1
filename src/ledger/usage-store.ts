import type { AttributionFilter } from "./ledger-store.ts";
import type { ZoneOffsets } from "./time-zone.ts";

/**
 * Grouping of usage. `none`: one group with an empty name. `tag`: a completion counts in the group of each of its tags. Completions
 * without a team, end user, session, agent or tag are in the group with an empty name.
 */
export type UsageGroup =
  | "none"
  | "model"
  | "key"
  | "account"
  | "team"
  | "outcome"
  | "endUser"
  | "session"
  | "agent"
  | "tag";

/** Sums that a query reads: those of minutes, which are kept for MINUTES_KEPT_MS, or those of hours. */
export type UsageGrain = "minute" | "hour";

/** Time steps of sums; `all`: one step. Steps shorter than an hour need the grain `minute`. */
export type UsageStep = "all" | "minute" | "five_minutes" | "hour" | "day";

/** Length of each step in milliseconds. A day in which clocks change has another length. */
export const STEP_MS: Readonly<Record<Exclude<UsageStep, "all">, number>> = {
  minute: 60_000,
  five_minutes: 300_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** Retention of the sums of minutes. */
export const MINUTES_KEPT_MS = 2 * STEP_MS.day;

/** A time range in Unix milliseconds; its end is exclusive. */
export interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The whole minutes or hours that contain a time range. */
export function wholeSteps({ sinceMs, untilMs }: Span, grain: UsageGrain = "hour"): Span {
  const stepMs = STEP_MS[grain];
  return { sinceMs: Math.floor(sinceMs / stepMs) * stepMs, untilMs: Math.ceil(untilMs / stepMs) * stepMs };
}

/** Filter of requests; absent fields do not filter. */
export interface UsageFilter extends Span, AttributionFilter {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The model that served, or the requested one if none did; UNKNOWN_MODEL for refused requests without one. */
  readonly model?: string | undefined;
  /** `served`, a failure code, or `failed` for all but `served`. */
  readonly outcome?: string | undefined;
}

/** A query of sums. */
export interface UsageQuery extends UsageFilter {
  readonly by: UsageGroup;
  readonly step: UsageStep;
  /** Default: `hour`. */
  readonly grain?: UsageGrain | undefined;
  /** Time zone of the days. Default: UTC. An hour that contains midnight belongs to the day in which it begins. */
  readonly offsets?: ZoneOffsets | undefined;
  /** Number of groups with their own rows, by largest cost; all others share one row. Undefined: all groups. */
  readonly maxGroups?: number | undefined;
  /** Accounts whose keys are named: a key may have another owner since. Undefined: all. */
  readonly keyOwners?: readonly string[] | undefined;
}

/** Sums of requests. */
export interface UsageSums {
  readonly completions: number;
  /** Completions that were not served. */
  readonly failed: number;
  readonly partial: number;
  readonly estimated: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly imageTokens: number;
  readonly costMicroUsd: number;
  /** Part of the cost: of attempts with accounts' own credentials. */
  readonly ownCostMicroUsd: number;
  /** Refused requests. They are not completions, so `failed` does not count them. */
  readonly refused: number;
}

/** Sums of one group and step. */
export interface UsageRow {
  /** Model, key, account or team ID, outcome, end user, session, agent or tag; empty for all others together, and without groups. */
  readonly group: string;
  /** Name of the key or account (its e-mail address, if it has one); undefined for other groups. */
  readonly name: string | undefined;
  /** Start of the step; undefined without steps. */
  readonly stepMs: number | undefined;
  readonly sums: UsageSums;
}

/** The answer to a query of sums. */
export interface UsageSummary {
  /** By time, then largest cost first and all others last; groups without requests have no row. */
  readonly rows: readonly UsageRow[];
  /**
   * Whether there were too many keys (or accounts) to sum each. Then the groups with their own rows are the largest of some candidates.
   * Candidates are keys that were among the 500 with the largest cost, of all models and outcomes, on some day of the report. Without a
   * filter by model or outcome, only 1.2 × `maxGroups` + 20 of them are used: those with the largest cost on the days on which they were
   * among the 500. The sums of rows, and that of all others, are exact.
   */
  readonly isChosenByDay: boolean;
  /** Sums of all requests together, each counted once. */
  readonly total: UsageSums;
  /**
   * Set when a report by end user, session, agent or tag was cut. Such a report sums single completions, at most 100,000 (by tag: 100,000
   * tags). The value is the end of the earliest summed completion; earlier ones are missing. Such a report has no refused requests.
   */
  readonly cutSinceMs: number | undefined;
}

/** A query of durations, by end of the completions. */
export interface LatencyQuery extends UsageFilter, Pick<UsageQuery, "offsets"> {
  readonly step: UsageStep;
}

/** 50th, 95th and 99th percentile. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Durations of the served completions of a step. */
export interface LatencyPoint {
  /** Start of the step; undefined for the whole range. */
  readonly stepMs: number | undefined;
  readonly served: number;
  readonly durationMs: Percentiles;
  /** Time to the first content of streamed completions; undefined without any. */
  readonly firstContentMs: Percentiles | undefined;
}

/** Durations of completions. */
export interface Latency {
  /** Undefined without served completions. */
  readonly overall: LatencyPoint | undefined;
  /** In ascending order; empty without steps. */
  readonly points: readonly LatencyPoint[];
  /** End of the first counted completion. */
  readonly sinceMs: number | undefined;
}

/** The store of reports. Methods except `rank` answer or reject within a few seconds. */
export interface UsageStore {
  /** Sums of the completions that started, and of the requests that were refused, in these whole hours or minutes. */
  summarize(query: UsageQuery): Promise<UsageSummary>;
  /** Durations of the matching served completions among the latest 50,000 of the key, or of the account. */
  latency(query: LatencyQuery): Promise<Latency>;
  /**
   * Notes the keys and the accounts with the largest cost for each whole day (UTC) that overlaps the time range, if the day has changed
   * by more than 1 % since it was last ranked. Returns the number of ranked days. Takes up to a minute per day for keys, and for
   * accounts. Stops early when the signal aborts. If a day fails, ranks all others before it rejects with the first error.
   */
  rank(span: Span, signal: AbortSignal): Promise<number>;
  /**
   * Removes the oldest sums of hours before this time, at most a thousand; where each month has its own table, the months that ended
   * before it. Returns the number of sums or months: call it until it returns 0.
   */
  prune(beforeMs: number): Promise<number>;
  /** As `prune`, for the sums of minutes. Stores with a table per month have a table per day for these. */
  pruneMinutes(beforeMs: number): Promise<number>;
}

/** Sum of all rows. */
export function totalOf(rows: readonly Pick<UsageRow, "sums">[]): UsageSums {
  const add = (sum: keyof UsageSums): number => rows.reduce((total, { sums }) => total + sums[sum], 0);
  return {
    completions: add("completions"),
    failed: add("failed"),
    partial: add("partial"),
    estimated: add("estimated"),
    promptTokens: add("promptTokens"),
    cachedTokens: add("cachedTokens"),
    completionTokens: add("completionTokens"),
    reasoningTokens: add("reasoningTokens"),
    imageTokens: add("imageTokens"),
    costMicroUsd: add("costMicroUsd"),
    ownCostMicroUsd: add("ownCostMicroUsd"),
    refused: add("refused"),
  };
}

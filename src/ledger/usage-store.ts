/** What usage is added up by; `none` makes one group of everything, whose name is empty. */
export type UsageGroup = "none" | "model" | "key" | "account" | "outcome";

/** The pieces of time that sums are made of; `all` makes one piece of it. Days are those of UTC. */
export type UsageStep = "all" | "hour" | "day";

/** The length of each step. */
export const STEP_MS: Readonly<Record<Exclude<UsageStep, "all">, number>> = { hour: 3_600_000, day: 86_400_000 };

/** From when to when, in Unix milliseconds. The end is not included. */
export interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The whole hours that a time reaches into. */
export function wholeHours({ sinceMs, untilMs }: Span): Span {
  return {
    sinceMs: Math.floor(sinceMs / STEP_MS.hour) * STEP_MS.hour,
    untilMs: Math.ceil(untilMs / STEP_MS.hour) * STEP_MS.hour,
  };
}

/** Which completions; what is left out does not narrow. */
export interface UsageFilter extends Span {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The served model, or the requested one of those that no model served. */
  readonly model?: string | undefined;
  /** `served`, a failure's code, or `failed` for all that were not served. */
  readonly outcome?: string | undefined;
}

/** Which completions to add up, and how. */
export interface UsageQuery extends UsageFilter {
  readonly by: UsageGroup;
  readonly step: UsageStep;
  /** Those of the largest cost have rows of their own, all others are one row. Undefined: as many as there are. */
  readonly maxGroups?: number | undefined;
}

/** What completions come to. */
export interface UsageSums {
  readonly completions: number;
  /** Of them: those that were not served. */
  readonly failed: number;
  readonly partial: number;
  readonly estimated: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly imageTokens: number;
  readonly costMicroUsd: number;
}

/** What the completions of one group and one step come to. */
export interface UsageRow {
  /** The model, the key's or the account's ID, or the outcome; empty for all others together, and without groups. */
  readonly group: string;
  /** The key's or the account's name (its e-mail address where it has one); undefined for the other groups. */
  readonly name: string | undefined;
  /** When the step begins; undefined without steps. */
  readonly stepMs: number | undefined;
  readonly sums: UsageSums;
}

/** Which completions' times to look at: by when they ended. */
export interface LatencyQuery extends UsageFilter {
  readonly step: UsageStep;
}

/** What a half, 95 and 99 of a hundred do not exceed. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** How long the served completions of one step took. */
export interface LatencyPoint {
  /** When the step begins; undefined for the whole time. */
  readonly stepMs: number | undefined;
  readonly served: number;
  readonly durationMs: Percentiles;
  /** Of those that were streamed; undefined when none was. */
  readonly firstContentMs: Percentiles | undefined;
}

/** How long completions took. */
export interface Latency {
  /** Undefined when nothing was served. */
  readonly overall: LatencyPoint | undefined;
  /** By time; none without steps. */
  readonly points: readonly LatencyPoint[];
  /** When the first of those that are counted ended. */
  readonly sinceMs: number | undefined;
}

/** What reports are made from. Every method answers, or rejects within a few seconds. */
export interface UsageStore {
  /**
   * Adds up the completions that started in these whole hours. By time, then the largest cost first and all others last;
   * what comes to nothing has no row.
   */
  summarize(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Looks at the latest 50,000 of the key, or else the account, and counts those of them that match and were served. */
  latency(query: LatencyQuery): Promise<Latency>;
  /** Removes the oldest sums of hours before, at most a thousand, and answers how many: to be called until none is left. */
  prune(beforeMs: number): Promise<number>;
}

/** What rows come to together. */
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
  };
}

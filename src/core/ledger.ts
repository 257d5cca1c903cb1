import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "./attempt.ts";
import type { Attribution } from "./attribution.ts";
import type { BudgetPeriod } from "./clock.ts";
import type { EntryDetails } from "./entry-details.ts";
import type { Failure, FailureCode } from "./failure.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Principal } from "./principal.ts";
import type { Trace } from "./trace.ts";

/** Facts of one completion, for log and metrics. Without prompt and answer. */
export interface CompletionRecord {
  readonly requestId: string;
  readonly completionId: string;
  readonly principal: Principal;
  readonly entrance: Entrance;
  readonly requestedModel: string;
  /** The model that answered; undefined when none did. */
  readonly servedModel: string | undefined;
  readonly streamed: boolean;
  readonly outcome: "served" | FailureCode;
  readonly attempts: readonly Attempt[];
  /** In Unix milliseconds. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The limits when the completion was admitted, or refused by one of them. */
  readonly limits: LimitFacts | undefined;
  /** Token counts of the provider; undefined when it sent none. */
  readonly usage: Usage | undefined;
  readonly costMicroUsd: number | undefined;
  /** Reserved for budgets, an upper bound of the cost; undefined without a reservation or a price. */
  readonly reservedMicroUsd?: number | undefined;
  /** Time from the arrival of the request to its end. */
  readonly durationMs: number;
  /** Time from the arrival to the first content of a stream. */
  readonly firstContentMs: number | undefined;
  /** `Call.attribution`. Default: the caller named nothing. */
  readonly attribution?: Attribution | undefined;
  /** Its message was sent to the caller; its cause is for the log. */
  readonly failure: Failure | undefined;
  /** Its ledger entry; undefined for a completion that was refused before admission. */
  readonly entry: LedgerEntry | undefined;
  /** Undefined for a completion that is not traced. */
  readonly trace?: Trace | undefined;
}

/**
 * Outcomes of an attempt that was stopped by the caller, a deadline, a revoked key or this process. The provider may bill it,
 * and its health is not affected.
 */
export const STOPPED: ReadonlySet<string> = new Set([
  "cancelled",
  "deadline_exceeded",
  "overloaded",
  "unauthenticated",
  "permission_denied",
  "stopped",
]);

/** The protocol of a request; `console` is the dashboard's playground. */
export type Entrance = "http" | "grpc" | "connect" | "console";

/** Receives every completion exactly once, however it ended. */
export interface Recorder {
  record(entry: CompletionRecord): void;
}

/** The tokens of one completion. */
export interface TokenCounts {
  /** Cached ones included. */
  readonly prompt: number;
  readonly cached: number;
  /** Reasoning and pictures included. */
  readonly completion: number;
  readonly reasoning: number;
  readonly image: number;
  /** Part of the prompt: written to the provider's cache. Default: 0. */
  readonly cacheWrite?: number | undefined;
  /** Part of `cacheWrite`: with a lifetime of an hour. Default: by the lifetime that the request asks for. */
  readonly cacheWriteHour?: number | undefined;
  /** Part of the prompt: speech and pictures. Default: 0. */
  readonly promptAudio?: number | undefined;
  readonly promptImage?: number | undefined;
  /** Part of `cached`: speech and pictures. Default: 0. */
  readonly cachedAudio?: number | undefined;
  readonly cachedImage?: number | undefined;
  /** Part of the answer: speech. Default: 0. */
  readonly completionAudio?: number | undefined;
  /** Searches of the web. Default: 0. */
  readonly webSearches?: number | undefined;
  /** Searches of stored files. Default: 0. */
  readonly fileSearches?: number | undefined;
  /** Executions of code, or containers for it, as the provider bills them. Default: 0. */
  readonly codeExecutions?: number | undefined;
  /** Names of the provider's counts that have no price here. Default: none. */
  readonly unknown?: readonly string[] | undefined;
}

/** Zero tokens. */
export const NO_TOKENS = { prompt: 0, cached: 0, completion: 0, reasoning: 0, image: 0 } satisfies TokenCounts;

/** Converts the usage of a provider into the counts of the ledger. */
export function toTokenCounts(usage: Usage): TokenCounts {
  return {
    prompt: usage.inputTokens,
    cached: Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens),
    completion: usage.outputTokens,
    reasoning: usage.reasoningOutputTokens ?? 0,
    image: Math.min(usage.imageOutputTokens ?? 0, usage.outputTokens),
    cacheWrite: usage.cacheWriteInputTokens,
    cacheWriteHour: usage.cacheWriteHourInputTokens,
    promptAudio: usage.audioInputTokens,
    promptImage: usage.imageInputTokens,
    cachedAudio: usage.cachedAudioInputTokens,
    cachedImage: usage.cachedImageInputTokens,
    completionAudio: usage.audioOutputTokens,
    webSearches: usage.webSearches,
    fileSearches: usage.fileSearches,
    codeExecutions: usage.codeExecutions,
    ...(usage.unknownUnits.length > 0 && { unknown: usage.unknownUnits }),
  };
}

/** Outcome of a completion whose process ended before it. Its answer is unknown, so it is charged its upper bound. */
export const PROCESS_LOST = "process_lost";

/** Outcome of an entry. */
type EntryOutcome = "served" | FailureCode | typeof PROCESS_LOST;

/** Account and key of requests that were refused without a valid key. */
export const NO_CALLER = "none";

/** The stored row of one completion. Without prompt and answer. Times are Unix milliseconds. */
export interface LedgerEntry {
  /** Generated by the gateway, so that callers cannot cause duplicates. */
  readonly completionId: string;
  /** May be chosen by the caller; not unique. */
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly entrance: Entrance;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly requestedModel: string;
  /** The model that answered; undefined when none did. */
  readonly servedModel: string | undefined;
  readonly streamed: boolean;
  readonly outcome: EntryOutcome;
  readonly attempts: readonly Attempt[];
  readonly tokens: TokenCounts;
  /** 0 without a price. */
  readonly costMicroUsd: number;
  /** Part of the cost: of attempts with the account's own credential, which the provider does not bill to the operator. Default: 0. */
  readonly ownCostMicroUsd?: number | undefined;
  readonly durationMs: number;
  readonly firstContentMs: number | undefined;
  /** Whether it ended early, after part of the answer had been sent to the caller. */
  readonly partial: boolean;
  /** Whether the token counts are estimated, because the provider sent none. */
  readonly estimated: boolean;
  /** The limits at admission, this completion included; undefined for entries written before they were stored. */
  readonly limits: LimitFacts | undefined;
  /** Default: nothing is known. */
  readonly attribution?: Attribution | undefined;
  /** Default: nothing is known. */
  readonly details?: EntryDetails | undefined;
}

/** A budget of an end user or a session. */
export interface AttributedBudget {
  /** `end_user:…` or `session:…`. */
  readonly subject: string;
  readonly period: BudgetPeriod;
}

/** A new entry, with the facts that its settlement needs. */
export interface NewLedgerEntry extends LedgerEntry {
  /** Key family whose budget is charged. Default: `keyId`. */
  readonly keyFamilyId?: string;
  /** Of a lost process's entry: the month whose spending it is added to. Default: the month of its reservation, or of its start. */
  readonly spendingMonth?: string | undefined;
  /** Budgets that are charged beside those of the key and its account. Default: none. */
  readonly budgets?: readonly AttributedBudget[] | undefined;
}

/** Port of the ledger. */
export interface Ledger {
  /**
   * Notes a completion before it is sent to a provider, with the entry that it gets if this process ends without `append`.
   * Resolves when the note is stored. While the database is unavailable it resolves after a short time, and the note is stored
   * as soon as that is possible. Undefined when the completion need not wait for it. Never rejects.
   */
  begin(entry: NewLedgerEntry): Promise<void> | undefined;
  /**
   * Writes an entry and settles its budget reservation, idempotently. Resolves when the entry is durable. While the database
   * is unavailable it resolves after a short time, and the entry waits in memory. Undefined when the answer need not wait for
   * it. Never rejects.
   */
  append(entry: NewLedgerEntry): Promise<void> | undefined;
  /** Throws `overloaded` while too many entries wait in memory to accept more. */
  admit(): void;
}

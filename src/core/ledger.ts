import type { Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import type { Failure, FailureCode } from "./failure.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Principal } from "./principal.ts";

/** What happened to one completion. Holds no prompt and no answer. */
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
  /** The limits when it was let in, or refused by one of them. */
  readonly limits: LimitFacts | undefined;
  /** What the provider counted; undefined when it said nothing. */
  readonly usage: Usage | undefined;
  readonly costMicroUsd: number | undefined;
  /** What was reserved for budgets, and should be the most that it costs; undefined without a reservation or a price. */
  readonly reservedMicroUsd?: number | undefined;
  /** From the request's arrival to its end. */
  readonly durationMs: number;
  /** To the first content of a stream. */
  readonly firstContentMs: number | undefined;
  /** Why it failed: its message is what the caller was told, its cause is for the log. */
  readonly failure: Failure | undefined;
  /** What the ledger keeps of it; undefined for one that was refused before it was let in. */
  readonly entry: LedgerEntry | undefined;
}

/**
 * Outcomes of an attempt that was stopped from our side, with the caller, its time, its session or this process: the
 * provider may have worked on it, and bill it, and did nothing wrong.
 */
export const STOPPED: ReadonlySet<string> = new Set([
  "cancelled",
  "deadline_exceeded",
  "overloaded",
  "unauthenticated",
  "permission_denied",
]);

/** How a request came in; `console` is the dashboard, whose completions are those of its playground. */
export type Entrance = "http" | "grpc" | "connect" | "console";

/** Is told about every completion, exactly once, however it ended. */
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
  /** Of the prompt: written to the provider's cache. This and the next two have prices, and are not kept. Default: 0. */
  readonly cacheWrite?: number | undefined;
  /** Of the prompt: speech. Default: 0. */
  readonly promptAudio?: number | undefined;
  /** Of the answer: speech. Default: 0. */
  readonly completionAudio?: number | undefined;
}

/** No tokens at all. */
export const NO_TOKENS = { prompt: 0, cached: 0, completion: 0, reasoning: 0, image: 0 } satisfies TokenCounts;

/** What a provider counted, as the ledger keeps it. */
export function toTokenCounts(usage: Usage): TokenCounts {
  return {
    prompt: usage.promptTokens,
    cached: usage.cachedTokens ?? 0,
    completion: usage.completionTokens,
    reasoning: usage.reasoningTokens ?? 0,
    image: usage.completionImageTokens ?? 0,
    cacheWrite: usage.cacheWriteTokens,
    promptAudio: usage.promptAudioTokens,
    completionAudio: usage.completionAudioTokens,
  };
}

/** One completion as it is kept. Holds no prompt and no answer. Times are Unix milliseconds. */
export interface LedgerEntry {
  /** Ours, so that no caller can make two completions one. */
  readonly completionId: string;
  /** May be the caller's, and the same for many. */
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
  readonly outcome: "served" | FailureCode;
  readonly attempts: readonly Attempt[];
  readonly tokens: TokenCounts;
  /** 0 when no price is known. */
  readonly costMicroUsd: number;
  readonly durationMs: number;
  readonly firstContentMs: number | undefined;
  /** Ended before its answer did, after some of it had reached the caller. */
  readonly partial: boolean;
  /** The provider said nothing about tokens: they are counted from the texts. */
  readonly estimated: boolean;
  /** The limits when it was let in, itself counted; undefined for entries from before they were kept. */
  readonly limits: LimitFacts | undefined;
}

/** An entry to be written, with what only its settlement needs. */
export interface NewLedgerEntry extends LedgerEntry {
  /** As the principal's: whose budget it is. Default: the key's own. */
  readonly keyFamilyId?: string;
}

/** Where completions are written down. */
export interface Ledger {
  /**
   * Resolves when the entry is durable, and what was reserved of budgets for it has been settled: once, however often it is
   * tried. While the database is away it resolves after a short while, and the entry waits in memory for it to come back.
   * Never rejects.
   */
  append(entry: NewLedgerEntry): Promise<void>;
  /** Throws `overloaded` while so many entries wait that no more can be promised to be kept. */
  admit(): void;
}

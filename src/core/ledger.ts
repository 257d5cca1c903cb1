import type { Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import type { FailureCode } from "./failure.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Entrance } from "./record.ts";

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

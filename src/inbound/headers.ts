import type { Completion, CompletionStart } from "../../gen/parley/v1/completion_pb.js";
import { type Attempt as AttemptMessage, AttemptOutcome } from "../../gen/parley/v1/report_pb.js";
import { toMs } from "../core/attempt.ts";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Failure } from "../core/failure.ts";
import type { LimitFacts, LimitState } from "../core/limiter.ts";
import type { Principal } from "../core/principal.ts";

/** Served model, attempts and overhead: sent as HTTP headers and as gRPC metadata. */
export type RoutingFacts = readonly (readonly [name: string, value: string])[];

/** Facts of a whole completion, or of embeddings. `elapsedMs` is the time since the request arrived. */
export function routingOfCompletion(
  { model, report }: Pick<Completion, "model" | "report">,
  requested: string,
  elapsedMs: number,
): RoutingFacts {
  return routingFacts({
    requested,
    served: model,
    tried: countTried(report?.attempts ?? []),
    overheadMs: elapsedMs - toMs(report?.upstreamDuration),
  });
}

/** Facts of a stream at its first content: the attempt that serves is not among `start.attempts` yet. */
export function routingOfStart(
  { model, attempts, upstreamDuration }: CompletionStart,
  requested: string,
  elapsedMs: number,
): RoutingFacts {
  return routingFacts({
    requested,
    served: model,
    tried: countTried(attempts) + 1,
    overheadMs: elapsedMs - toMs(upstreamDuration),
  });
}

/** Facts of a failed completion. */
export function routingOfFailure({ attempts }: Failure, requested: string): RoutingFacts {
  return [
    ["parley-requested-model", headerSafe(requested)],
    ["parley-attempts", String(attempts.filter(({ outcome }) => outcome !== "skipped").length)],
  ];
}

/** Removes what a header cannot hold from a model name that a caller wrote. */
function headerSafe(text: string): string {
  return text.slice(0, 256).replace(/[^\x20-\x7e]/g, "");
}

function countTried(attempts: readonly AttemptMessage[]): number {
  return attempts.filter(({ outcome }) => outcome !== AttemptOutcome.SKIPPED).length;
}

function routingFacts(of: { requested: string; served: string; tried: number; overheadMs: number }): RoutingFacts {
  return [
    ["parley-requested-model", headerSafe(of.requested)],
    ["parley-served-model", of.served],
    ["parley-attempts", String(of.tried)],
    ["parley-overhead-ms", Math.max(of.overheadMs, 0).toFixed(1)],
  ];
}

const KINDS = ["requests", "tokens"] as const;

const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/**
 * `x-ratelimit-limit-requests`, `-remaining-requests`, `-reset-requests`, and the same with `-tokens`, as far as there
 * is such a limit.
 */
export function toLimitHeaders(facts: LimitFacts): [name: string, value: string][] {
  return KINDS.flatMap((kind): [string, string][] => {
    const state = facts[kind];
    if (state === undefined) return [];
    return [
      [`x-ratelimit-limit-${kind}`, String(state.limit)],
      [`x-ratelimit-remaining-${kind}`, String(state.remaining)],
      [`x-ratelimit-reset-${kind}`, toReset(state.resetMs)],
    ];
  });
}

/** Parses the limits that another process wrote into headers or metadata; missing and invalid ones are omitted. */
export function readLimitHeaders(valueOf: (name: string) => string | undefined): LimitFacts {
  const [requests, tokens] = KINDS.map((kind): LimitState | undefined => {
    const limit = toCount(valueOf(`x-ratelimit-limit-${kind}`));
    const remaining = toCount(valueOf(`x-ratelimit-remaining-${kind}`));
    const resetMs = fromReset(valueOf(`x-ratelimit-reset-${kind}`));
    if (limit === undefined || remaining === undefined || resetMs === undefined) return undefined;
    return { limit, remaining, resetMs };
  });
  return { requests, tokens };
}

/** OpenAI's format: `12ms`, `1.5s`, `6m0s`, `1h0m0s`. */
function toReset(resetMs: number): string {
  const ms = Math.ceil(resetMs);
  if (ms < 1000) return `${ms}ms`;
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (ms < 60_000) return seconds;
  const minutes = `${Math.floor(ms / 60_000) % 60}m${seconds}`;
  return ms < 3_600_000 ? minutes : `${Math.floor(ms / 3_600_000)}h${minutes}`;
}

function fromReset(value: string | undefined): number | undefined {
  if (value === undefined || !/^(\d{1,9}(\.\d{1,9})?(h|ms|m|s)){1,4}$/.test(value)) return undefined;
  const parts = value.matchAll(/([\d.]+)(h|ms|m|s)/g);
  return Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS_MS[unit ?? ""] ?? 0), 0));
}

function toCount(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Keys whose limits are kept; the ones updated longest ago are dropped first. */
const MAX_KEYS = 50_000;

const UNKNOWN: LimitFacts = { requests: undefined, tokens: undefined };

/** Limits of keys as last reported by another process. */
export class LastLimits {
  readonly #byKey = new BoundedMap<string, LimitFacts>(MAX_KEYS);

  /** Stores the limits of a key. */
  note({ keyId }: Principal, facts: LimitFacts): void {
    this.#byKey.set(keyId, facts);
  }

  /** Last reported limits; none for an unknown key. */
  peek({ keyId }: Principal): LimitFacts {
    return this.#byKey.get(keyId) ?? UNKNOWN;
  }
}

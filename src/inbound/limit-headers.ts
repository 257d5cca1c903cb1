import type { LimitFacts, LimitState } from "../core/limiter.ts";

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

/** The facts that another process wrote into headers or metadata; what is not there or makes no sense is left out. */
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

/** As OpenAI writes it: `12ms`, `1.5s`, `6m0s`, `1h0m0s`. */
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

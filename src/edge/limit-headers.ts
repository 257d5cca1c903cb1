import type { LimitFacts, LimitState } from "../core/limiter.ts";

/** What a caller is told of its limits, as response headers. */
export function limitHeaders({ requests, tokens }: LimitFacts): [name: string, value: string][] {
  return [...headersOf("requests", requests), ...headersOf("tokens", tokens)];
}

/** The limits that headers tell of; undefined when they tell of none. */
export function readLimitHeaders(header: (name: string) => string | undefined): LimitFacts | undefined {
  const requests = read("requests", header);
  const tokens = read("tokens", header);
  return requests === undefined && tokens === undefined ? undefined : { requests, tokens };
}

function headersOf(name: string, state: LimitState | undefined): [string, string][] {
  if (state === undefined) return [];
  return [
    [`x-ratelimit-limit-${name}`, String(state.limit)],
    [`x-ratelimit-remaining-${name}`, String(state.remaining)],
    [`x-ratelimit-reset-${name}`, `${Math.ceil(state.resetMs)}ms`],
  ];
}

function read(name: string, header: (name: string) => string | undefined): LimitState | undefined {
  const [limit, remaining, resetMs] = ["limit", "remaining", "reset"].map((what) =>
    Number.parseFloat(header(`x-ratelimit-${what}-${name}`) ?? "NaN"),
  ) as [number, number, number];
  return [limit, remaining, resetMs].every(Number.isFinite) ? { limit, remaining, resetMs } : undefined;
}

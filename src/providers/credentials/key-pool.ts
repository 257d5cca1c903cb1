import { hash } from "node:crypto";
import type { Upstream } from "../transport/http.ts";
import { readRetryAfterMs } from "../wire/status-failure.ts";
import type { ApiKey } from "./api-key.ts";
import { createMerge } from "./credential.ts";

/** Rest in ms of a key without advice of the provider, and the longest that its advice is followed. */
const REST_MS = 10_000;
const MAX_REST_MS = 60_000;

/** A key that rests. */
export interface KeyRest {
  /** Position in the configuration, from 1. */
  readonly key: number;
  readonly status: number;
  readonly restMs: number;
}

export interface KeyPoolOptions {
  /** At least one. */
  readonly keys: readonly ApiKey[];
  /** Called at the start of each rest. Default: not called. */
  readonly onRest?: (rest: KeyRest) => void;
  /** Milliseconds of a monotonic clock. Default: the process's. */
  readonly now?: () => number;
}

interface PooledKey {
  readonly apiKey: ApiKey;
  readonly merge: ReturnType<typeof createMerge>;
  /** Position from 1. */
  readonly position: number;
  restsUntilMs: number;
}

/**
 * Sends each request with one of several keys. Callers keep to a key, because a provider's prompt cache belongs to an account: the
 * first one by rendezvous hashing, which all replicas agree on. A key that the provider limits (429) or refuses (401) rests, and the
 * request is sent with the next one at once. With all keys at rest the one is used that rests for the shortest time.
 */
export function withKeyPool(
  upstream: Upstream,
  { keys, onRest, now = () => performance.now() }: KeyPoolOptions,
): Upstream {
  const pool = keys.map((apiKey, index): PooledKey => {
    return { apiKey, merge: createMerge(), position: index + 1, restsUntilMs: -Infinity };
  });
  const rest = (key: PooledKey, { status, headers }: Awaited<ReturnType<Upstream["post"]>>): void => {
    const restMs = Math.min(readRetryAfterMs(headers) ?? REST_MS, MAX_REST_MS);
    key.restsUntilMs = Math.max(key.restsUntilMs, now() + restMs);
    onRest?.({ key: key.position, status, restMs });
  };
  return {
    async post(request, accept) {
      const order = orderFor(request.keyFamilyId ?? "", pool);
      const awake = order.filter(({ restsUntilMs }) => restsUntilMs <= now());
      const usable = awake.length > 0 ? awake : order.toSorted((a, b) => a.restsUntilMs - b.restsUntilMs).slice(0, 1);
      for (const [index, key] of usable.entries()) {
        const headers = key.merge(request.headers, key.apiKey.headers());
        const response = await upstream.post({ ...request, headers }, accept);
        const isRefused = response.status === 429 || response.status === 401;
        if (isRefused) rest(key, response);
        if (!isRefused || index === usable.length - 1) return response;
        response.abandon();
      }
      throw new RangeError("a pool needs at least one key");
    },
    close: () => upstream.close(),
  };
}

/** The keys in the order in which a caller prefers them. */
function orderFor(caller: string, pool: readonly PooledKey[]): readonly PooledKey[] {
  if (pool.length === 1) return pool;
  const seed = hash("sha1", caller, "buffer").readUInt32LE();
  const scores = pool.map((_, index) => mix(seed ^ Math.imul(index + 1, 0x9e3779b1)));
  return pool.toSorted((a, b) => scores[a.position - 1]! - scores[b.position - 1]!);
}

/** The finalizer of MurmurHash3: each bit of the number decides about half of the bits of the result. */
function mix(number: number): number {
  let mixed = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

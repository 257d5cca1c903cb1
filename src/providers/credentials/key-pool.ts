import { hash } from "node:crypto";
import type { Upstream } from "../transport/http.ts";
import { readRetryAfterMs } from "../wire/status-failure.ts";
import type { ApiKey } from "./api-key.ts";
import { createMerge } from "./credential.ts";

/** Milliseconds for which a key is not used: without the provider's `retry-after`, and the limit of that. */
const PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 60_000;

/** A key that is not used for a time, because the provider refused or limited it. */
export interface KeyPause {
  /** Position in the configuration, from 1. */
  readonly key: number;
  readonly status: number;
  readonly pauseMs: number;
}

export interface KeyPoolOptions {
  /** At least one. */
  readonly keys: readonly ApiKey[];
  /** Called at the start of each pause. Default: not called. */
  readonly onPause?: (pause: KeyPause) => void;
  /** Milliseconds of a monotonic clock. Default: the process's. */
  readonly now?: () => number;
}

/**
 * Sends each request with one of several keys. A caller keeps its key, because a provider's prompt cache belongs to an account; the
 * order of keys follows from rendezvous hashing and is the same in all replicas. A key that the provider refuses (401) is paused: it is
 * not used for a time. A key that the provider limits (429) is paused for the caller's account. It is paused for all accounts once two of
 * them were limited without a success in between; otherwise a request that is always too large would block all keys for all callers.
 * The refused request is sent with the next key at once. After the usable keys, the key with the shortest remaining pause is tried.
 */
export function withKeyPool(
  upstream: Upstream,
  { keys, onPause, now = () => performance.now() }: KeyPoolOptions,
): Upstream {
  const pool = keys.map((apiKey, index) => new PooledKey(apiKey, index + 1));
  return {
    async post(request, accept) {
      const { accountId = "" } = request;
      const usable = usableKeys(orderFor(request.keyFamilyId ?? "", pool), { accountId, nowMs: now() });
      for (const [index, key] of usable.entries()) {
        const headers = key.merge(request.headers, key.apiKey.headers());
        const sentMs = now();
        const response = await upstream.post({ ...request, headers }, accept);
        const { status } = response;
        if (status !== 429 && status !== 401) {
          if (status < 400) key.worked(sentMs);
          return response;
        }
        const pauseMs = Math.min(readRetryAfterMs(response.headers) ?? PAUSE_MS, MAX_PAUSE_MS);
        key.pause(status === 429 ? accountId : undefined, { sinceMs: now(), untilMs: now() + pauseMs });
        onPause?.({ key: key.position, status, pauseMs });
        if (index === usable.length - 1) return response;
        response.abandon();
      }
      throw new RangeError("a pool needs at least one key");
    },
    close: () => upstream.close(),
  };
}

/** The keys that are not paused for the account, in their order, then the key with the shortest remaining pause. */
function usableKeys(
  order: readonly PooledKey[],
  { accountId, nowMs }: { readonly accountId: string; readonly nowMs: number },
): readonly PooledKey[] {
  const usable = order.filter((key) => key.pausedUntilMs(accountId) <= nowMs);
  if (usable.length === order.length) return usable;
  const paused = order.filter((key) => !usable.includes(key));
  const [soonest] = paused.toSorted((a, b) => a.pausedUntilMs(accountId) - b.pausedUntilMs(accountId));
  return [...usable, soonest!];
}

/** Limit of accounts whose pauses a key keeps; the oldest is evicted. */
const MAX_ACCOUNTS = 100;

interface Pause {
  readonly sinceMs: number;
  readonly untilMs: number;
}

const NO_PAUSE: Pause = { sinceMs: -Infinity, untilMs: -Infinity };

class PooledKey {
  readonly apiKey: ApiKey;
  readonly merge = createMerge();
  /** Position in the configuration, from 1. */
  readonly position: number;
  /** Pauses of accounts that were limited since the last success. */
  readonly #limited = new Map<string, Pause>();
  #ofAll = NO_PAUSE;

  constructor(apiKey: ApiKey, position: number) {
    this.apiKey = apiKey;
    this.position = position;
  }

  pausedUntilMs(accountId: string): number {
    return Math.max(this.#ofAll.untilMs, this.#limited.get(accountId)?.untilMs ?? -Infinity);
  }

  /** `accountId`: undefined for all accounts. */
  pause(accountId: string | undefined, { sinceMs, untilMs }: Pause): void {
    const extended = (before = NO_PAUSE): Pause => ({ sinceMs, untilMs: Math.max(before.untilMs, untilMs) });
    const limitsOthers = [...this.#limited].some(([other, each]) => other !== accountId && each.untilMs > sinceMs);
    if (accountId === undefined || limitsOthers) this.#ofAll = extended(this.#ofAll);
    if (accountId === undefined) return;
    this.#limited.set(accountId, extended(this.#limited.get(accountId)));
    if (this.#limited.size > MAX_ACCOUNTS) this.#limited.delete(this.#limited.keys().next().value!);
  }

  /** Notes that the provider has accepted a request that was sent at `sentMs`: ends the pauses that began before. */
  worked(sentMs: number): void {
    if (this.#ofAll.sinceMs <= sentMs) this.#ofAll = NO_PAUSE;
    for (const [accountId, { sinceMs }] of this.#limited) if (sinceMs <= sentMs) this.#limited.delete(accountId);
  }
}

/** The keys in the order in which a caller prefers them. */
function orderFor(caller: string, pool: readonly PooledKey[]): readonly PooledKey[] {
  if (pool.length === 1) return pool;
  const seed = hash("sha1", caller, "buffer").readUInt32LE();
  const scores = pool.map((_, index) => mix(seed ^ Math.imul(index + 1, 0x9e3779b1)));
  return pool.toSorted((a, b) => scores[a.position - 1]! - scores[b.position - 1]!);
}

/** The finalizer of MurmurHash3: each bit of the number changes about half of the bits of the result. */
function mix(number: number): number {
  let mixed = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

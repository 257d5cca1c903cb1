import type { Authenticator } from "../access/key-cache.ts";
import type { KeyChangeFeed } from "../access/key-store.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { RedisRates } from "../limits/redis.ts";

/** Interval of exchanges. */
const EXCHANGED_MS = 1_000;
/** Changes per exchange, and those that may wait while Redis is unavailable. */
const MAX_NOTED = 500;
const MAX_WAITING = 10_000;

interface KeyChangePorts {
  readonly exchange: RedisRates["exchangeChanges"];
  /** Changes of keys that the database announces to this process. */
  readonly feed: KeyChangeFeed;
  readonly keys: Pick<Authenticator, "invalidateSince">;
  readonly clock: Clock;
}

/**
 * Passes changed keys through Redis, from processes to which the database announces them to those that it does not reach,
 * until it is stopped: a revoked key stops working in a process that is cut off from the database alone. The first exchange
 * has the changes of the last day, for keys that the process knows from before its start; it is over, or Redis unavailable,
 * when the promise resolves.
 */
export async function exchangeKeyChanges({ exchange, feed, keys, clock }: KeyChangePorts): Promise<() => void> {
  const stopped = new AbortController();
  const waiting = new Set<string>();
  let sinceMs = 0;
  const unsubscribe = feed.subscribe((hash) => {
    // Without a hash every process asks the database again.
    if (hash !== undefined && waiting.size < MAX_WAITING) waiting.add(hash);
  });
  /** Answers whether there may be more. */
  const exchangeOnce = async (): Promise<boolean> => {
    const noted = [...waiting].slice(0, MAX_NOTED);
    const page = await exchange(noted, sinceMs).catch(() => undefined);
    if (page === undefined) return false;
    for (const hash of noted) waiting.delete(hash);
    const { changes, nowMs, hasMore } = page;
    // By this machine's clock, which may differ from that of Redis.
    for (const { hash, atMs } of changes) keys.invalidateSince(hash, clock.now() - (nowMs - atMs));
    // A new master whose clock is behind has changes from before `sinceMs`.
    const isBehind = nowMs < sinceMs;
    sinceMs = isBehind ? 0 : page.sinceMs;
    return hasMore || isBehind;
  };
  const exchangeAll = async (): Promise<void> => {
    while (!stopped.signal.aborted && (await exchangeOnce()));
  };
  const repeat = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await sleep(clock, EXCHANGED_MS * (0.9 + Math.random() * 0.1), stopped.signal);
      await exchangeAll();
    }
  };
  await exchangeAll();
  void repeat();
  return () => {
    unsubscribe();
    stopped.abort();
  };
}

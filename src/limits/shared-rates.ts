import { type Clock, sleep } from "../core/clock.ts";
import { type Bucket, UNITS } from "./bucket.ts";
import { createMemoryRates } from "./memory.ts";
import { LEASE_MS, type RateStore, type RateSubject, RENEW_MS } from "./rates.ts";
import { KnownLevels } from "./request-rate.ts";

/** Failures in a row that open it. */
const FAILURES = 5;
const PROBE_MS = 1000;

interface StoreBreakerOptions {
  readonly clock: Clock;
  /** Asks the store something that does no harm; a rejection means that it is still away. */
  readonly probe: () => Promise<unknown>;
  readonly onChange: (open: boolean) => void;
}

/**
 * The circuit breaker of a store. Opens after five failures in a row; then nobody asks the store until a probe, about
 * each second, succeeds. No request is ever a probe, so that none waits for a store that is away.
 */
class StoreBreaker {
  readonly #options: StoreBreakerOptions;
  #inARow = 0;
  #open = false;
  #closed = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: StoreBreakerOptions) {
    this.#options = options;
  }

  /** Whether the store is not to be asked. */
  get open(): boolean {
    return this.#open;
  }

  /** The store answered. Late answers from before it opened do not close it. */
  succeeded(): void {
    this.#inARow = 0;
  }

  failed(): void {
    this.#inARow += 1;
    if (this.#open || this.#closed || this.#inARow < FAILURES) return;
    this.#open = true;
    this.#options.onChange(true);
    this.#probeLater();
  }

  /** No more probes. */
  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
  }

  /** With jitter, so that many replicas do not come back at the same moment. */
  #probeLater(): void {
    if (this.#closed) return;
    const delayMs = PROBE_MS * (0.8 + Math.random() * 0.4);
    this.#stopTimer = this.#options.clock.after(delayMs, () => {
      this.#options.probe().then(
        () => this.#shut(),
        () => this.#probeLater(),
      );
    });
  }

  #shut(): void {
    if (this.#closed) return;
    this.#open = false;
    this.#inARow = 0;
    this.#options.onChange(false);
  }
}

/** Where rates are decided: for all replicas together, or each for itself while what they share is away. */
export type RatesState = "shared" | "local";

export interface SharedRatesOptions {
  /** Whose state all replicas share. Is closed with this one. */
  readonly remote: RateStore;
  readonly clock: Clock;
  /** As that of the remote one. */
  readonly burstMs: number;
  /** This process among those that share the state. */
  readonly replica: string;
  /** Counts the replicas somewhere else, too, for when the shared state is away from the beginning. Default: nowhere. */
  readonly census?: (() => Promise<number>) | undefined;
  /**
   * Called when the state changes: for the log. `replicas` is by how many the limits are divided meanwhile, and `cause` why
   * the shared state is away.
   */
  readonly onChange?: (state: RatesState, facts: { readonly replicas: number; readonly cause: unknown }) => void;
}

/** How often replicas are counted: for so long a new one is unknown to the others. */
const COUNT_MS = 2_000;
/** For how long a smaller number of replicas is not believed: one may be late, and what they share may have been emptied. */
const KEPT_MS = 2 * LEASE_MS;
/** How long joining waits from one attempt to the next. */
const JOIN_AGAIN_MS = 200;

/** A store that never rejects, and says how it decides. */
export interface SharedRates extends RateStore {
  /**
   * Counts this process among the replicas and learns how many there are, for as long as it is open. Resolves when the
   * shared state has been reached once, or after `waitMs`: before, this process must not decide on its own.
   */
  join(waitMs: number): Promise<void>;
  /** By how many the limits are divided while the shared state is away. */
  replicas(): number;
  /** For readiness and metrics. */
  state(): RatesState;
  /** How many requests were decided on by this process's own share so far: also those that found the shared state slow. */
  localDecisions(): number;
}

/**
 * A remote store and, while it is away, this process's share of the limits: each divided by the largest number of replicas
 * seen in the last minute in which it was there, rounded down, and at least 1. So it is never closed, and n replicas together admit at most what the limit says,
 * or n per minute when the limit is smaller than that. A bucket begins with this replica's share of what it last saw in
 * the shared one: what others have taken since, or all of it where it saw nothing, is admitted once more. Places of
 * requests that run on from before are not counted in the local shares. A fleet that has never reached the remote store
 * and has no census does not know its size: then each replica takes the whole limit for itself.
 */
export function createSharedRates(options: SharedRatesOptions): SharedRates {
  const { remote, clock, burstMs, replica, census, onChange } = options;
  const known = new KnownLevels(burstMs);
  const createLocal = (): RateStore => {
    const toShare = (kind: "requests" | "tokens", subject: string): Bucket | undefined => {
      const nowMs = Math.floor(clock.monotonic());
      const last = known.last(kind, subject, nowMs);
      return last && { level: Math.floor((last.level * UNITS) / replicas), at: nowMs };
    };
    return createMemoryRates({
      clock,
      burstMs,
      begin: (subject) => ({ requests: toShare("requests", subject), tokens: toShare("tokens", subject) }),
    });
  };
  let local = createLocal();
  /** What was taken locally, and from which shares. Those under way only. */
  const takenLocally = new Map<string, readonly RateSubject[]>();
  let localDecisions = 0;
  let replicas = 1;
  /** Until then fewer are not believed. */
  let keptUntilMs = -Infinity;
  const noteReplicas = (seen: number): void => {
    const nowMs = clock.monotonic();
    if (seen < replicas && nowMs < keptUntilMs) return;
    replicas = seen;
    keptUntilMs = nowMs + KEPT_MS;
  };
  let cause: unknown;
  const breaker = new StoreBreaker({
    clock,
    async probe() {
      const seen = await remote.renew({ replica, held: [] });
      // Others may not have come back yet.
      keptUntilMs = clock.monotonic() + KEPT_MS;
      noteReplicas(seen);
    },
    onChange(open) {
      // The next time it begins with what is known then.
      if (!open) local = createLocal();
      onChange?.(open ? "local" : "shared", { replicas, cause: open ? cause : undefined });
    },
  });

  /** Asks the remote store; undefined when it is away. */
  const ask = async <T>(question: () => Promise<T>): Promise<T | undefined> => {
    if (breaker.open) return undefined;
    try {
      const answer = await question();
      breaker.succeeded();
      return answer;
    } catch (reason) {
      cause = reason;
      breaker.failed();
      return undefined;
    }
  };

  let stopCounting = (): void => undefined;
  const keepCounting = (askedMs: number): void => {
    stopCounting = clock.after(COUNT_MS, () => {
      const isDue = clock.monotonic() - askedMs >= RENEW_MS;
      keepCounting(isDue ? clock.monotonic() : askedMs);
      void count(isDue);
    });
  };
  const count = async (withCensus: boolean): Promise<void> => {
    const [seen, elsewhere] = await Promise.all([
      ask(() => remote.renew({ replica, held: [] })),
      withCensus ? census?.().catch(() => undefined) : undefined,
    ]);
    const most = Math.max(seen ?? 0, elsewhere ?? 0);
    if (most > 0) noteReplicas(most);
  };

  return {
    state: () => (breaker.open ? "local" : "shared"),
    localDecisions: () => localDecisions,
    replicas: () => replicas,
    async join(waitMs) {
      const untilMs = clock.monotonic() + waitMs;
      noteReplicas(Math.max((await census?.().catch(() => undefined)) ?? 1, replicas));
      keepCounting(clock.monotonic());
      for (;;) {
        const seen = await remote.renew({ replica, held: [] }).catch(() => undefined);
        if (seen !== undefined) return noteReplicas(seen);
        if (clock.monotonic() >= untilMs) return;
        await sleep(clock, JOIN_AGAIN_MS);
      }
    },
    async take(demand) {
      const decision = await ask(() => remote.take(demand));
      if (decision !== undefined) {
        known.note(decision.levels, clock.monotonic());
        return decision;
      }
      localDecisions += 1;
      const shares = demand.subjects.map((subject) => shareOf(subject, replicas));
      const share = await local.take({ ...demand, subjects: shares });
      if (share.admitted) takenLocally.set(demand.id, shares);
      return share;
    },
    async release(release) {
      const shares = takenLocally.get(release.id);
      if (shares === undefined) {
        await ask(() => remote.release(release));
        return;
      }
      takenLocally.delete(release.id);
      await local.release({ ...release, subjects: shares });
    },
    async renew({ replica: name, held }) {
      const mine = held.filter(({ id }) => takenLocally.has(id));
      const theirs = held.filter(({ id }) => !takenLocally.has(id));
      // Both are begun before anything is waited for: what is released meanwhile must not be renewed after that.
      const [seen] = await Promise.all([
        ask(() => remote.renew({ replica: name, held: theirs })),
        local.renew({ replica: name, held: mine }),
      ]);
      if (seen !== undefined) noteReplicas(seen);
      return replicas;
    },
    async close() {
      breaker.close();
      stopCounting();
      await Promise.all([local.close(), remote.close()]);
    },
  };
}

function shareOf(subject: RateSubject, replicas: number): RateSubject {
  const share = (limit: number | undefined): number | undefined =>
    limit === undefined ? undefined : Math.max(Math.floor(limit / replicas), 1);
  return {
    subject: subject.subject,
    accountId: subject.accountId,
    requestsPerMinute: share(subject.requestsPerMinute),
    tokensPerMinute: share(subject.tokensPerMinute),
    concurrentRequests: share(subject.concurrentRequests),
  };
}

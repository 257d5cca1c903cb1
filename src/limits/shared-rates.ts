import { type Clock, sleep } from "../core/clock.ts";
import { isAttributed } from "./attributed.ts";
import { type Bucket, UNITS } from "./bucket.ts";
import { createMemoryRates } from "./memory.ts";
import { LEASE_MS, type RateStore, RateStoreError, type RateStoreFault, type RateSubject, RENEW_MS } from "./rates.ts";
import { KnownLevels } from "./request-rate.ts";
import { StoreBreaker } from "./store-breaker.ts";

/** Where rates are decided: in the shared store, or in each replica while it is unavailable. */
export type RatesState = "shared" | "local";

export interface SharedRatesOptions {
  /** The shared store. Closed with this one. */
  readonly remote: RateStore;
  readonly clock: Clock;
  /** Must equal that of the remote store. */
  readonly burstMs: number;
  /** ID of this process among those that share the state. */
  readonly replica: string;
  /** Number of replicas that an earlier process has seen last. Used while this process cannot count them. Default: 1. */
  readonly replicasBefore?: number | undefined;
  /** Second source of the number of replicas, when the shared store is unavailable from the start. Default: none. */
  readonly census?: (() => Promise<number>) | undefined;
  /**
   * Called when the state changes, for the log. `replicas`: divisor of the limits meanwhile; `cause`: why the shared store is
   * unavailable.
   */
  readonly onChange?: (state: RatesState, facts: { readonly replicas: number; readonly cause: unknown }) => void;
}

/** Interval in which replicas are counted. The others learn of a new replica within it. */
const COUNT_MS = 2_000;
/** Delay before a smaller number of replicas is used: a replica may be late, and the store may have been emptied. */
const KEPT_MS = 2 * LEASE_MS;
/** Time limit of a probe. A slower store would decide too late. */
const PROBE_LIMIT_MS = 500;
/** Pause between attempts to join. */
const JOIN_AGAIN_MS = 200;

/** A store of rates that never rejects. */
export interface SharedRates extends RateStore {
  /**
   * Registers this process among the replicas and tracks their number until `close`. Resolves when the shared store has answered
   * once, or after `waitMs`. Until then this process must not decide by itself.
   */
  join(waitMs: number): Promise<void>;
  /** Divisor of the limits while the shared store is unavailable. */
  replicas(): number;
  /** For readiness and metrics. */
  state(): RatesState;
  /** Requests decided by this process's own share, including those for which the shared store was too slow. */
  localDecisions(): number;
  /** Failed commands of the shared store so far, by their fault. */
  faults(): ReadonlyMap<RateStoreFault, number>;
}

/**
 * A remote store of rates, with local decisions while it is unavailable. Then this process applies its share of each limit: the
 * limit divided by the largest number of replicas in the last minute of availability, rounded down, at least 1. So requests are
 * always decided, and n replicas together admit at most the limit, or n per minute for a smaller limit.
 *
 * A local bucket starts with this replica's share of the last known level, or full for an unknown level. What other replicas have
 * taken since that level was known can be taken once more. Local shares do not count concurrency units of requests that started
 * before. Replicas that never reached the remote store, and have neither a `census` nor `replicasBefore`, do not know their number:
 * each applies the whole limit.
 */
export function createSharedRates(options: SharedRatesOptions): SharedRates {
  const { remote, clock, burstMs, replica, replicasBefore = 1, census, onChange } = options;
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
  /** Local reservations in flight, with their shares. */
  const takenLocally = new Map<string, readonly RateSubject[]>();
  let localDecisions = 0;
  const faults = new Map<RateStoreFault, number>();
  const noteFault = (reason: unknown): void => {
    const fault = reason instanceof RateStoreError ? reason.fault : "error";
    faults.set(fault, (faults.get(fault) ?? 0) + 1);
  };
  let replicas = replicasBefore;
  /** Time until which a smaller number of replicas is not used. */
  let keptUntilMs = -Infinity;
  const noteReplicas = (seen: number): void => {
    const nowMs = clock.monotonic();
    if (seen < replicas && nowMs < keptUntilMs) return;
    replicas = seen;
    keptUntilMs = nowMs + KEPT_MS;
  };
  /** End of the last outage. */
  let sharedSinceMs = -Infinity;
  let cause: unknown;
  const breaker = new StoreBreaker({
    clock,
    async probe() {
      const askedMs = clock.monotonic();
      const seen = await remote.renew({ replica, held: [] }).catch((reason: unknown) => {
        noteFault(reason);
        if (isOfNode(reason)) return replicas;
        throw reason;
      });
      if (clock.monotonic() - askedMs > PROBE_LIMIT_MS) throw new Error("the shared store is too slow");
      // Other replicas may not have reconnected yet.
      keptUntilMs = clock.monotonic() + KEPT_MS;
      noteReplicas(seen);
    },
    onChange(open) {
      const nowMs = clock.monotonic();
      // The next outage starts with new local buckets, from the levels known then. If this outage followed another within KEPT_MS, it
      // continues with the used ones.
      if (!open && nowMs - sharedSinceMs > KEPT_MS) local = createLocal();
      if (!open) sharedSinceMs = nowMs;
      onChange?.(open ? "local" : "shared", { replicas, cause: open ? cause : undefined });
    },
  });

  /** Asks the remote store; undefined while it is unavailable. */
  const ask = async <T>(question: () => Promise<T>): Promise<T | undefined> => {
    if (breaker.open) return undefined;
    try {
      const answer = await question();
      breaker.succeeded();
      return answer;
    } catch (reason) {
      noteFault(reason);
      // Other nodes of the store answer, and the node's own breaker keeps it from delaying requests.
      if (isOfNode(reason)) return undefined;
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
    faults: () => faults,
    replicas: () => replicas,
    async join(waitMs) {
      const untilMs = clock.monotonic() + waitMs;
      const countElsewhere = async (): Promise<void> =>
        noteReplicas(Math.max((await census?.().catch(() => undefined)) ?? 1, replicas));
      await countElsewhere();
      keepCounting(clock.monotonic());
      for (;;) {
        const seen = await remote.renew({ replica, held: [] }).catch(() => undefined);
        if (seen !== undefined) return noteReplicas(seen);
        // Replicas that start together have registered meanwhile.
        if (clock.monotonic() >= untilMs) return countElsewhere();
        await sleep(clock, JOIN_AGAIN_MS);
      }
    },
    async take(demand) {
      const decision = await ask(() => remote.take(demand));
      if (decision !== undefined) {
        // Levels of end users, whose number is not bounded, would evict those of the keys.
        const ofKeys = decision.levels.filter(({ subject }) => !isAttributed(subject));
        known.note(ofKeys, clock.monotonic());
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
        // A store that keeps units until their release must learn of it after an outage, too.
        if (breaker.open) await remote.release(release).catch(noteFault);
        else await ask(() => remote.release(release));
        return;
      }
      takenLocally.delete(release.id);
      await local.release({ ...release, subjects: shares });
    },
    async renew({ replica: name, held }) {
      const mine = held.filter(({ id }) => takenLocally.has(id));
      const theirs = held.filter(({ id }) => !takenLocally.has(id));
      // Both start before the first await: a unit must not be renewed after its release.
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

function isOfNode(reason: unknown): boolean {
  return reason instanceof RateStoreError && reason.scope === "node";
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

import { hostname } from "node:os";
import type { Clock } from "../core/clock.ts";
import {
  AttemptCounter,
  type OpenBreaker,
  type ReplicaState,
  type TargetHistoryStore,
} from "../ledger/target-history.ts";
import type { OwnedRouter } from "../router/router.ts";
import type { AttemptTimes } from "../router/upstream-health.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Interval of writes. */
const WRITTEN_MS = 10_000;
/** Part of the interval by which a write is moved at random, so that processes do not write at the same moment. */
const JITTER = 0.2;
/** Open breakers in the state of a process. */
const MAX_BREAKERS = 256;

interface TargetHistoryPorts {
  readonly store: Pick<TargetHistoryStore, "write" | "forget">;
  readonly router: Pick<OwnedRouter, "openings">;
  readonly self: Omit<ReplicaState, "host" | "breakers" | "startedAtMs" | "pending">;
  /** Settings that wait for a restart. */
  readonly pending: () => NonNullable<ReplicaState["pending"]>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Counts attempts at upstream models, and writes them, with the state of this process, at intervals. */
export function keepTargetHistory({ store, router, self, pending, clock, log }: TargetHistoryPorts): {
  /** Counts an attempt at the upstream model with this key. */
  readonly count: (target: string, outcome: string, times: AttemptTimes) => void;
  readonly close: () => Promise<void>;
} {
  const counter = new AttemptCounter();
  const [host, startedAtMs] = [hostname(), clock.now()];
  let isFailing = false;
  let isClosed = false;
  let cancel = (): void => undefined;
  let writing: Promise<void> = Promise.resolve();

  const breakers = (): OpenBreaker[] =>
    [...router.openings()].slice(0, MAX_BREAKERS).map(([target, { sinceMs, remainingMs, isProbed }]) => ({
      target,
      sinceMs,
      untilMs: Math.round(clock.now() + remainingMs),
      isProbed,
    }));
  const write = async (): Promise<void> => {
    try {
      await counter.writeWith((counts) =>
        store.write(counts, { ...self, host, startedAtMs, breakers: breakers(), pending: pending() }),
      );
      isFailing = false;
    } catch (cause) {
      if (!isFailing)
        log.warn({ cause: String(cause) }, "the history of targets cannot be written; it waits in memory");
      isFailing = true;
    }
  };
  const plan = (): void => {
    if (isClosed) return;
    cancel = clock.after(WRITTEN_MS * (1 - JITTER * Math.random()), () => {
      writing = write().finally(plan);
    });
  };
  plan();
  return {
    count: (target, outcome, times) => counter.add({ atMs: clock.now(), target, outcome, ...times }),
    async close() {
      isClosed = true;
      cancel();
      await writing;
      await write();
      await store.forget(self.replica).catch(() => undefined);
    },
  };
}

import { OverloadFailure } from "../admission/overload-failure.ts";
import type { Clock } from "../core/clock.ts";
import { NO_CALLER } from "../core/ledger.ts";
import type { Principal } from "../core/principal.ts";
import type { RequestFeed } from "../inbound/dashboard/request-feed.ts";
import { messageOf, type RefusedRecord, toRefusedEntry, toRefusedRecord } from "../inbound/refused-request.ts";
import { RefusalCounter, type RefusalFacts } from "../ledger/refusal-counter.ts";
import { type RefusalStore, UNKNOWN_MODEL } from "../ledger/refusal-store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Observer, ObserverPorts } from "./observer.ts";

export interface RefusalPorts extends Pick<ObserverPorts, "find" | "log"> {
  readonly clock: Clock;
  readonly store: Pick<RefusalStore, "add">;
  /** Receives the ended requests of known callers; undefined in a process without a dashboard. */
  readonly feed: RequestFeed | undefined;
}

/**
 * Keeps refused requests: counts and samples in the database, those of known callers in the feed. Requests to addresses that do not
 * exist, and the dashboard's own calls, are none.
 */
export function keepRefusals({ store, feed, clock, find, log }: RefusalPorts): {
  readonly observer: Observer;
  readonly close: () => Promise<void>;
} {
  const counter = new RefusalCounter({ store, clock, onTrouble: (trouble) => tellTrouble(log, trouble) });
  const sample = (record: RefusedRecord): void =>
    counter.sample({ entry: toRefusedEntry(record), message: messageOf(record) });
  return {
    observer: {
      record(record) {
        feed?.record(record);
        const { entry, principal, outcome, requestedModel, endedAtMs: atMs } = record;
        if (entry !== undefined) return;
        const model = find(requestedModel)?.id ?? UNKNOWN_MODEL;
        if (counter.count({ ...callerOf(principal), atMs, model, outcome })) sample(record);
      },

      refused(refusal) {
        const { entrance, failure, principal } = refusal;
        if (entrance === "console" || failure.code === "not_found") return;
        const atMs = clock.now();
        const isWanted = counter.count({ ...callerOf(principal), atMs, model: UNKNOWN_MODEL, outcome: failure.code });
        // Refusals of an overload would displace all others.
        const isShown = principal !== undefined && !(failure instanceof OverloadFailure);
        if (!isWanted && !isShown) return;
        const record = toRefusedRecord(refusal, atMs);
        if (isWanted) sample(record);
        if (isShown) feed?.record({ ...record, principal });
      },
    },
    async close() {
      const lost = await counter.close();
      if (lost > 0) log.warn({ refusals: lost }, "counts of refused requests could not be written");
    },
  };
}

function callerOf(principal: Principal | undefined): Pick<RefusalFacts, "accountId" | "keyId"> {
  return { accountId: principal?.accountId ?? NO_CALLER, keyId: principal?.keyId ?? NO_CALLER };
}

function tellTrouble(log: Logger, trouble: { readonly cause: unknown } | undefined): void {
  if (trouble === undefined) log.info("counts of refused requests are written again");
  else log.warn({ cause: String(trouble.cause) }, "counts of refused requests cannot be written; they wait in memory");
}

import { pruneAccess } from "../access/housekeeping.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Work that is done again and again, and for which nobody waits. */
export interface Job {
  /** What it does, for the log. */
  readonly name: string;
  readonly everyMs: number;
  /** Answers how many things it did; 0 is not worth a line in the log. Stops early when the signal aborts. */
  readonly run: (signal: AbortSignal) => Promise<number>;
}

/** So much of its interval a job is moved at random, so that replicas do not do it at the same moment. */
const JITTER = 0.2;

/** Runs jobs at their intervals until it is closed. One that fails is logged, and done again the next time. */
export function startHousekeeping(jobs: readonly Job[], ports: { readonly clock: Clock; readonly log: Logger }) {
  const { clock, log } = ports;
  const cancels = new Map<Job, () => void>();
  const underWay = new Set<Promise<void>>();
  const closing = new AbortController();
  const plan = (job: Job): void => {
    const delayMs = job.everyMs * (1 - JITTER * Math.random());
    cancels.set(
      job,
      clock.after(delayMs, () => {
        const done = runOnce(job).finally(() => {
          underWay.delete(done);
          if (!closing.signal.aborted) plan(job);
        });
        underWay.add(done);
      }),
    );
  };
  const runOnce = async ({ name, run }: Job): Promise<void> => {
    try {
      const count = await run(closing.signal);
      if (count > 0) log.info({ job: name, count }, "housekeeping");
    } catch (error) {
      log.warn({ job: name, cause: String(error) }, "housekeeping failed; it is done again later");
    }
  };
  for (const job of jobs) plan(job);
  return {
    /** Begins nothing more; resolves when what is under way has ended. */
    async close(): Promise<void> {
      closing.abort();
      for (const cancel of cancels.values()) cancel();
      await Promise.all(underWay);
    },
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Sums of usage are kept so that a year can be compared with the one before it. */
const USAGE_KEPT_MS = 800 * 24 * HOUR_MS;

/** What is tidied up in the database while the gateway runs. Replicas may all do it. */
export function jobsOf({ ledger }: Config, { store, clock }: { readonly store: Store; readonly clock: Clock }): Job[] {
  return [
    {
      name: "free budgets held by processes that are gone",
      everyMs: MINUTE_MS,
      run: (signal) => untilNone(() => store.budgets.reap(), signal),
    },
    {
      name: "bring entries of the ledger into its tables",
      everyMs: MINUTE_MS,
      // Done all the time, and nobody waits for it: here it is said when it fails.
      run: () => store.ledger.flush().then(() => 0),
    },
    {
      name: "remove sessions, known browsers, invitations, throttles and security events that have ended",
      everyMs: 10 * MINUTE_MS,
      async run() {
        const pruned = await pruneAccess({ store: store.accounts, clock, throttles: store.throttles });
        return Object.values(pruned).reduce((sum, count) => sum + count, 0);
      },
    },
    {
      name: "remove ledger entries past their retention",
      everyMs: 10 * MINUTE_MS,
      run: (signal) => untilNone(() => store.ledger.prune(clock.now() - ledger.retentionMs), signal),
    },
    {
      name: "remove sums of usage past their time",
      everyMs: HOUR_MS,
      // Never before the entries that they are made of.
      run: (signal) =>
        untilNone(() => store.usage.prune(clock.now() - Math.max(USAGE_KEPT_MS, ledger.retentionMs)), signal),
    },
  ];
}

/** The stores do a bounded number at a time. A gateway that is to end does not wait for millions. */
async function untilNone(remove: () => Promise<number>, signal: AbortSignal): Promise<number> {
  let total = 0;
  while (!signal.aborted) {
    const count = await remove();
    if (count === 0) break;
    total += count;
  }
  return total;
}

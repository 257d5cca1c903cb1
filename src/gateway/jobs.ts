import { pruneAccess } from "../access/prune-access.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Lease } from "../ledger/lease.ts";
import { PROCESS_LEASE_MS } from "../ledger/ledger-store.ts";
import { ATTEMPTS_KEPT_MS } from "../ledger/target-history.ts";
import { MINUTES_KEPT_MS, type UsageStore } from "../ledger/usage-store.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { signInRulesOf } from "./access.ts";

/** Periodic background work. */
export interface Job {
  /** Description, for the log. */
  readonly name: string;
  readonly everyMs: number;
  /** Answers the number of items processed; 0 is not logged. Stops early when the signal aborts. */
  readonly run: (signal: AbortSignal) => Promise<number>;
}

/** Share of its interval by which a job is moved at random, so that replicas do not run it at the same moment. */
const JITTER = 0.2;

/** Runs jobs at their intervals until it is closed. A failure is logged, and the job runs again at its next interval. */
export function startJobs(jobs: readonly Job[], ports: { readonly clock: Clock; readonly log: Logger }) {
  const { clock, log } = ports;
  const cancels = new Map<Job, () => void>();
  const running = new Set<Promise<void>>();
  const closing = new AbortController();
  const plan = (job: Job): void => {
    const delayMs = job.everyMs * (1 - JITTER * Math.random());
    cancels.set(
      job,
      clock.after(delayMs, () => {
        const done = runOnce(job).finally(() => {
          running.delete(done);
          if (!closing.signal.aborted) plan(job);
        });
        running.add(done);
      }),
    );
  };
  const runOnce = async ({ name, run }: Job): Promise<void> => {
    try {
      const count = await run(closing.signal);
      if (count > 0) log.info({ job: name, count }, "job done");
    } catch (error) {
      log.warn({ job: name, cause: String(error) }, "job failed; it runs again at the next interval");
    }
  };
  for (const job of jobs) plan(job);
  return {
    /** Starts no more jobs; resolves when the running ones have ended. */
    async close(): Promise<void> {
      closing.abort();
      for (const cancel of cancels.values()) cancel();
      await Promise.all(running);
    },
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** No month is shorter. */
const SHORTEST_MONTH_MS = 28 * 24 * HOUR_MS;
/** Retention of usage sums: more than two years, so that a year can be compared with the one before it. */
const USAGE_KEPT_MS = 800 * 24 * HOUR_MS;

/** Retention of samples of refused requests, unless entries of the ledger are kept shorter. */
const REFUSALS_KEPT_MS = 7 * 24 * HOUR_MS;

/** Settles completions of other processes. */
export function settleJob(lease: Pick<Lease, "settle">): Job {
  return {
    name: "settle completions of processes that have ended without them",
    everyMs: PROCESS_LEASE_MS / 3,
    run: (signal) => lease.settle(signal),
  };
}

/**
 * Limits this process's connections to PostgreSQL to its share, which changes with the number of processes. Logs a warning when
 * the server has too few for all, once until it has enough.
 */
export function connectionsJob({
  store,
  log,
}: {
  readonly store: Pick<Store, "shareConnections">;
  readonly log: Logger;
}): Job {
  let isKnown = false;
  return {
    name: "share the connections to PostgreSQL",
    everyMs: MINUTE_MS,
    async run() {
      const share = await store.shareConnections();
      const isShort = share?.isEnough === false;
      if (isShort && !isKnown) {
        const { processes, limit, each } = share;
        log.warn(
          { processes, connections_each: each, connections_of_server: limit },
          "PostgreSQL has too few connections for all processes; raise its max_connections, run fewer processes, or use a pooler",
        );
      }
      isKnown = isShort;
      return 0;
    },
  };
}

/** The gateway's jobs on the database. Several replicas may run them at the same time. */
export function jobsOf({ ledger, responses, content, signIn }: Config, ports: JobPorts): Job[] {
  const { store, clock } = ports;
  /** Removes what was kept for `keptMs`, until nothing is left. */
  const past =
    (keptMs: number, remove: (beforeMs: number) => Promise<number>): Job["run"] =>
    async (signal) => {
      const beforeMs = (await readTime(ports)) - keptMs;
      return untilNone(() => remove(beforeMs), signal);
    };
  return [
    {
      name: "free budgets whose holds have expired",
      everyMs: MINUTE_MS,
      run: (signal) => untilNone(() => store.budgets.reap(), signal),
    },
    {
      name: "compact the ledger's journal into its tables",
      everyMs: MINUTE_MS,
      // Answers 0: compaction is routine, so only its failures are logged.
      run: () => store.ledger.flush().then(() => 0),
    },
    {
      name: "drop ledger entries whose month is being removed",
      everyMs: MINUTE_MS,
      run: async () => store.ledger.takeDropped(),
    },
    {
      name: "remove expired sessions, known browsers, invitations, throttles and entries of the audit log",
      everyMs: 10 * MINUTE_MS,
      async run() {
        const nowMs = await readTime(ports);
        const pruned = await pruneAccess({
          store: store.accounts,
          nowMs,
          throttles: store.throttles,
          audit: store.audit,
          signIn: signInRulesOf({ signIn }),
        });
        return Object.values(pruned).reduce((sum, count) => sum + count, 0);
      },
    },
    {
      name: "move security events that an earlier program records beside this one into the audit log",
      everyMs: MINUTE_MS,
      run: (signal) => untilNone(() => store.audit.takeEvents(), signal),
    },
    {
      name: "create the tables of the coming months and days",
      everyMs: HOUR_MS,
      async run() {
        const [months, days] = [SHORTEST_MONTH_MS, 24 * HOUR_MS].map((periodMs) =>
          [0, 1, 2].map((periods) => clock.now() + periods * periodMs),
        ) as [number[], number[]];
        return (await store.ledger.prepareMonths(months)) + (await store.refusals.prepareDays(days));
      },
    },
    {
      name: "remove ledger entries past their retention",
      everyMs: 10 * MINUTE_MS,
      run: past(ledger.retentionMs, (beforeMs) => store.ledger.prune(beforeMs)),
    },
    {
      name: "remove stored responses past their retention",
      everyMs: 10 * MINUTE_MS,
      // Without a retention all responses are removed, which an earlier configuration had kept.
      run: past(responses.keptMs, (beforeMs) => store.responses.prune(beforeMs)),
    },
    {
      name: "remove prompts and answers past their retention",
      everyMs: 10 * MINUTE_MS,
      // Without a retention all are removed, as with responses.
      run: past(content.keptMs ?? 0, (beforeMs) => store.contents.prune(beforeMs)),
    },
    {
      name: "remove usage sums past their retention",
      everyMs: HOUR_MS,
      // Never before the entries that they sum up.
      run: past(Math.max(USAGE_KEPT_MS, ledger.retentionMs), (beforeMs) => store.usage.prune(beforeMs)),
    },
    {
      name: "remove usage sums of minutes past their retention",
      everyMs: 10 * MINUTE_MS,
      run: past(MINUTES_KEPT_MS, (beforeMs) => store.usage.pruneMinutes(beforeMs)),
    },
    {
      name: "remove samples of refused requests past their retention",
      everyMs: 10 * MINUTE_MS,
      run: past(Math.min(REFUSALS_KEPT_MS, ledger.retentionMs), (beforeMs) => store.refusals.prune(beforeMs)),
    },
    ...(["minute", "hour"] as const).map((grain) => ({
      name: `remove attempts at targets by the ${grain} past their retention`,
      everyMs: 10 * MINUTE_MS,
      run: past(ATTEMPTS_KEPT_MS[grain], (beforeMs) => store.targetHistory.prune(grain, beforeMs)),
    })),
    rankJob({ usage: store.usage, clock }),
  ];
}

/** Difference of the clocks of this process and the database from which on nothing is removed. */
const MOST_SKEW_MS = HOUR_MS;

interface JobPorts {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * The database's time, by which rows are removed. Rejects when this process's clock differs much: one of the two is wrong, and what is
 * removed by a wrong one is lost.
 */
async function readTime({ store, clock }: JobPorts): Promise<number> {
  const nowMs = await store.nowMs();
  const skewMs = Math.abs(nowMs - clock.now());
  if (skewMs <= MOST_SKEW_MS) return nowMs;
  const hours = Math.round(skewMs / HOUR_MS);
  throw new Error(
    `the clocks of this process and of the database differ by ${hours} h, so nothing is removed; synchronize both with NTP`,
  );
}

/** Days of one call. The first run also ranks earlier days, because none is ranked after an update. */
const RANKED_MS = 32 * 24 * HOUR_MS;

/**
 * Ranks the days of the usage sums for reports of many keys: at first all of them, then the latest. A day that cannot be
 * ranked does not keep others from it; the next run then reads all days again.
 */
export function rankJob({ usage, clock }: { readonly usage: Pick<UsageStore, "rank">; readonly clock: Clock }): Job {
  let hasAll = false;
  return {
    name: "rank the keys and accounts of each day by their cost",
    everyMs: 10 * MINUTE_MS,
    async run(signal) {
      const nowMs = clock.now();
      const sinceMs = nowMs - (hasAll ? RANKED_MS : USAGE_KEPT_MS);
      const errors: unknown[] = [];
      for (let untilMs = nowMs; untilMs > sinceMs && !signal.aborted; untilMs -= RANKED_MS) {
        try {
          await usage.rank({ sinceMs: untilMs - RANKED_MS, untilMs }, signal);
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
      hasAll = !signal.aborted;
      // Answers 0: only its failures are logged.
      return 0;
    },
  };
}

/** Repeats a removal, which is bounded per call, until nothing is left or the signal aborts. */
async function untilNone(remove: () => Promise<number>, signal: AbortSignal): Promise<number> {
  let total = 0;
  while (!signal.aborted) {
    const count = await remove();
    if (count === 0) break;
    total += count;
  }
  return total;
}

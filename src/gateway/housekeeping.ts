import type { Clock } from "../core/clock.ts";
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

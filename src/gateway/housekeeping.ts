import type { Clock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Work that is done again and again, and for which nobody waits. */
export interface Chore {
  /** What it does, for the log. */
  readonly name: string;
  readonly everyMs: number;
  /** Answers how many things it did; 0 is not worth a line in the log. Stops early when the signal aborts. */
  readonly run: (signal: AbortSignal) => Promise<number>;
}

/** So much of its interval a chore is moved at random, so that replicas do not do it at the same moment. */
const JITTER = 0.2;

/** Runs chores at their intervals until it is closed. One that fails is logged, and done again the next time. */
export function startHousekeeping(chores: readonly Chore[], ports: { readonly clock: Clock; readonly log: Logger }) {
  const { clock, log } = ports;
  const cancels = new Map<Chore, () => void>();
  const underWay = new Set<Promise<void>>();
  const closing = new AbortController();
  const plan = (chore: Chore): void => {
    const delayMs = chore.everyMs * (1 - JITTER * Math.random());
    cancels.set(
      chore,
      clock.after(delayMs, () => {
        const done = runOnce(chore).finally(() => {
          underWay.delete(done);
          if (!closing.signal.aborted) plan(chore);
        });
        underWay.add(done);
      }),
    );
  };
  const runOnce = async ({ name, run }: Chore): Promise<void> => {
    try {
      const count = await run(closing.signal);
      if (count > 0) log.info({ chore: name, count }, "housekeeping");
    } catch (error) {
      log.warn({ chore: name, cause: String(error) }, "housekeeping failed; it is done again later");
    }
  };
  for (const chore of chores) plan(chore);
  return {
    /** Begins nothing more; resolves when what is under way has ended. */
    async close(): Promise<void> {
      closing.abort();
      for (const cancel of cancels.values()) cancel();
      await Promise.all(underWay);
    },
  };
}

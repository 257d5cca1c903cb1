import type { Clock } from "../core/clock.ts";
import type { HealthNotes } from "../core/health-notes.ts";
import type { OwnedRouter } from "../router/router.ts";

/** Interval of exchanges. */
const EXCHANGED_MS = 2_000;
/** Part of the interval by which an exchange is moved at random, so that processes do not exchange at the same moment. */
const JITTER = 0.2;

interface SharedHealthPorts {
  readonly notes: HealthNotes;
  readonly router: Pick<OwnedRouter, "healthNote" | "heed">;
  readonly clock: Clock;
}

/**
 * Exchanges notes about upstream models with other processes, until it is stopped. After a failed exchange the notes of
 * others are dropped.
 */
export function shareHealth({ notes, router, clock }: SharedHealthPorts): () => void {
  let isStopped = false;
  let cancel = (): void => undefined;
  const exchange = async (): Promise<void> => {
    const note = router.healthNote();
    // Only the order of targets depends on it.
    router.heed(note === undefined ? [] : await notes.exchange(note).catch(() => []));
    plan();
  };
  const plan = (): void => {
    if (!isStopped) cancel = clock.after(EXCHANGED_MS * (1 - JITTER * Math.random()), () => void exchange());
  };
  plan();
  return () => {
    isStopped = true;
    cancel();
  };
}

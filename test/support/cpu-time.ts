/** Returns the minimum processor time of three runs, in milliseconds, because other load only adds to it. */
export function cpuMs(work: () => unknown): number {
  return Math.min(...[1, 2, 3].map(() => cpuMsOfRun(work)));
}

const MIN_ROUNDS = 3;
const MAX_ROUNDS = 30;

/** Minimum processor times, in milliseconds. */
export interface ComparedMs {
  readonly workMs: number;
  readonly referenceMs: number;
}

/**
 * Runs both functions in turns and returns the minimum processor time of each: a busy machine slows down both, and
 * other load only adds to the time. Runs more rounds while the minima do not satisfy `isWithin`. More rounds favour
 * neither function, because they can only lower both minima.
 */
export function compareCpuMs(
  work: () => unknown,
  reference: () => unknown,
  isWithin: (minima: ComparedMs) => boolean,
): ComparedMs {
  let minima: ComparedMs = { workMs: Infinity, referenceMs: Infinity };
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    minima = {
      workMs: Math.min(minima.workMs, cpuMsOfRun(work)),
      referenceMs: Math.min(minima.referenceMs, cpuMsOfRun(reference)),
    };
    if (round >= MIN_ROUNDS && isWithin(minima)) break;
  }
  return minima;
}

function cpuMsOfRun(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

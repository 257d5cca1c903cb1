/** Shares of a limit of memory from which on Parley is careful, more careful, and takes no new work. */
const STEPS = [0.85, 0.92, 0.95] as const;
/** A step is left this much below where it is entered. */
const HYSTERESIS = 0.03;

/**
 * 0: enough. 1: idle connections are kept for a shorter time. 2: connections are closed after their next answer. 3: no
 * completion is begun. What runs goes on in any case.
 */
export type MemoryStep = 0 | 1 | 2 | 3;

/** What a process uses of what it may. */
export interface MemoryUse {
  readonly usedBytes: number;
  /** Infinity for none. */
  readonly limitBytes: number;
}

/** The share that is used of the scarcest. */
export function usedShare(uses: readonly MemoryUse[]): number {
  return Math.max(0, ...uses.map(({ usedBytes, limitBytes }) => usedBytes / limitBytes));
}

/** The step that a share of the memory means after another one: steps are left a little later than they are entered. */
export function memoryStep(share: number, before: MemoryStep): MemoryStep {
  const isOver = (threshold: number, step: number): boolean => share >= threshold - (step < before ? HYSTERESIS : 0);
  const step = STEPS.findLastIndex(isOver) + 1;
  return step as MemoryStep;
}

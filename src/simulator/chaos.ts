import { createDice, type Dice } from "./dice.ts";

/** Random faults from a seed, to test how a client handles them. */
export interface ChaosOptions {
  readonly seed: number;
  /** Percentage of completion requests that get a fault. */
  readonly percent: number;
}

/** Bad enough for every kind of fault to be seen within a hundred requests or two, and mild enough to work with. */
export const CHAOS_PERCENT = 20;

/** Possible faults in the grammar of `faults.ts`. A repeated entry is more frequent. */
const DRAWS: readonly [draw: (dice: Dice) => string, ...((dice: Dice) => string)[]] = [
  () => "status=429; retry-after=1",
  () => "status=429",
  () => "status=500",
  () => "status=503",
  () => "status=503; retry-after=2",
  () => "status=529",
  () => "status=529",
  () => "status=401",
  () => "reset",
  () => "hang",
  (dice) => dice.pick(["garbage", "html", "empty", "gzip", "wrong-length"]),
  (dice) => dice.pick(["no-content", "truncate"]),
  () => "error-first",
  (dice) => `error-after=${1 + dice.roll(20)}`,
  (dice) => `hang-after=${1 + dice.roll(20)}`,
  (dice) => `cut-after=${dice.roll(20)}`,
  (dice) => `cut-after=${dice.roll(20)}`,
  (dice) => `reset-after=${1 + dice.roll(20)}`,
  (dice) => `delay=${500 + dice.roll(2_000)}`,
  // Slow, and split in the middle of its characters.
  (dice) => `drip=${1 + dice.roll(40)}; every=${1 + dice.roll(5)}`,
];

/**
 * The fault that the completion request `number`, counted from 1, meets; undefined when it meets none. A pure function: with
 * the same seed the same requests in the same order meet the same faults.
 */
export function drawFault({ seed, percent }: ChaosOptions, number: number): string | undefined {
  const dice = createDice(`chaos ${seed} ${number}`);
  return dice.roll(100) < percent ? dice.pick(DRAWS)(dice) : undefined;
}

/**
 * How far a test of `npm run faults` goes. `.ci/run` runs every family at its small scale with the same seeds each time;
 * `npm run faults -- --long` runs the large one with a seed of its own, which it prints, or the one of `--seed`.
 */
const LONG = process.env["PARLEY_FAULTS_LONG"] === "1";

/** The first of these numbers in CI, the second in a long run. */
export function scale(inCi: number, long: number): number {
  return LONG ? long : inCi;
}

/** A time limit for a test whose work grows with the scale, in milliseconds. */
export function timeLimit(inCiSeconds: number, longSeconds: number): number {
  return scale(inCiSeconds, longSeconds) * 1_000;
}

/** The seed that everything random in a family of tests is drawn from: the same in CI every time. */
export function seed(): number {
  return Number(process.env["PARLEY_FAULTS_SEED"] ?? 20_261_121);
}

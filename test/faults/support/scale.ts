/**
 * Scale of a test of `npm run faults`. `.ci/run` and `.ci/long` run every family at its small scale with fixed seeds; `npm run faults
 * -- --long` runs the large scale with a random seed, which it prints, or the one of `--seed`.
 */
const LONG = process.env["PARLEY_FAULTS_LONG"] === "1";

/** Returns the first value in CI, the second in a long run. */
export function scale<T>(inCi: T, long: T): T {
  return LONG ? long : inCi;
}

/** Timeout in milliseconds for a test whose work depends on the scale. */
export function timeLimit(inCiSeconds: number, longSeconds: number): number {
  return scale(inCiSeconds, longSeconds) * 1_000;
}

/** Seed of everything random in a family of tests: constant in CI. */
export function seed(): number {
  return Number(process.env["PARLEY_FAULTS_SEED"] ?? 20_261_121);
}

/**
 * Scale of the tests of `npm run faults` and `npm run test:replicas`: small with fixed seeds, or with `-- --long` large. `npm run
 * faults -- --long` has a random seed, which it prints, or the one of `--seed`.
 */
const LONG = process.env["PARLEY_TESTS_LONG"] === "1";

/** Returns the first value without `--long`, the second with it. */
export function scale<T>(inCi: T, long: T): T {
  return LONG ? long : inCi;
}

/** Timeout in milliseconds for a test whose work depends on the scale. */
export function timeLimit(inCiSeconds: number, longSeconds: number): number {
  return scale(inCiSeconds, longSeconds) * 1_000;
}

/** Seed of everything random in a family of tests: constant without `--long`. */
export function seed(): number {
  return Number(process.env["PARLEY_FAULTS_SEED"] ?? 20_261_121);
}

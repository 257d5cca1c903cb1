import { median } from "./statistics.ts";

/** Number of slices compared with as many before them. */
const WINDOW = 3;
/** Relative fall of the cost below which the warm-up ends. */
const STEADY = 0.97;
/**
 * Minimum of a warm-up: this number of requests or chunks, or this number of seconds. V8 optimises functions during the
 * first 20,000 requests, with pauses in which the cost does not fall; on a slow machine six slices can lie in such a pause.
 */
const LEAST_UNITS = 20_000;
const LEAST_SECONDS = 10;

/** Costs of the slices so far, and their sums. */
export interface WarmUp {
  readonly costs: readonly number[];
  readonly units: number;
  readonly seconds: number;
}

/**
 * Whether the cost no longer falls. A fixed time is not sufficient: the compiler's remaining work depends on the amount
 * of code, and its threads are charged to the server.
 */
export function isSteady({ costs, units, seconds }: WarmUp): boolean {
  if (costs.length < 2 * WINDOW || (units < LEAST_UNITS && seconds < LEAST_SECONDS)) return false;
  return median(costs.slice(-WINDOW)) >= STEADY * median(costs.slice(-2 * WINDOW, -WINDOW));
}

import { median } from "./statistics.ts";

/** Number of slices compared with as many before them. */
const WINDOW = 3;
/** Relative fall of the cost below which the warm-up ends. */
const STEADY = 0.97;

/**
 * Whether the cost no longer falls. A fixed time is not sufficient: the compiler's remaining work depends on the amount
 * of code, and its threads are charged to the server.
 */
export function isSteady(costs: readonly number[]): boolean {
  if (costs.length < 2 * WINDOW) return false;
  return median(costs.slice(-WINDOW)) >= STEADY * median(costs.slice(-2 * WINDOW, -WINDOW));
}

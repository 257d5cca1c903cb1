import { median } from "./statistics.ts";

/** So many slices are compared with as many before them. */
const WINDOW = 3;
/** A smaller fall than this is not waited for. */
const STEADY = 0.97;

/**
 * Whether the cost no longer falls. A fixed time would not do: what a compiler still has to do depends on how much code
 * there is, and its threads are charged to the server.
 */
export function isSteady(costs: readonly number[]): boolean {
  if (costs.length < 2 * WINDOW) return false;
  return median(costs.slice(-WINDOW)) >= STEADY * median(costs.slice(-2 * WINDOW, -WINDOW));
}

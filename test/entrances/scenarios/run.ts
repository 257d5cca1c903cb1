import type { Mode } from "../../../src/core/router.ts";
import type { EntranceName, ModelName, Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** One scenario on one entrance in one mode. */
export interface Run {
  readonly world: World;
  readonly scenario: Scenario;
  readonly entrance: EntranceName;
  /** HTTP: through a front in another process than the core. Default: one process for both. */
  readonly through?: "front";
  readonly mode: Mode;
  readonly requestId: string;
  /** Upstream names of the models. */
  readonly names: Readonly<Record<ModelName, string>>;
}

/** Timeout for conditions, generous for slow machines. */
export const PATIENCE = { timeout: 5000, interval: 5 } as const;

/** Number of calls of each upstream model. */
export type Calls = Readonly<Record<ModelName, number>>;

/** Number of calls in flight. */
export async function activeCalls({ world }: Run): Promise<number> {
  return (await world.gateway.readiness()).active_calls + (await world.front.activeCalls());
}

/** Counts the upstream calls so far. */
export function countCalls({ world, names }: Run): Calls {
  const entries = Object.entries(names).map(([name, upstream]) => [name, world.upstream.calls(upstream).length]);
  return Object.fromEntries(entries) as Calls;
}

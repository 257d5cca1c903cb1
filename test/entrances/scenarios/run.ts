import type { Mode } from "../../../src/core/router.ts";
import type { EntranceName, ModelName, Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** One scenario at one entrance in one mode. */
export interface Run {
  readonly world: World;
  readonly scenario: Scenario;
  readonly entrance: EntranceName;
  /** HTTP: at a front in another process than the core. Default: both are one. */
  readonly through?: "front";
  readonly mode: Mode;
  readonly requestId: string;
  /** The upstream names of the models. */
  readonly names: Readonly<Record<ModelName, string>>;
}

/** Everything that is waited for happens within this, on a slow machine too. */
export const PATIENCE = { timeout: 5000, interval: 5 } as const;

/** How many calls each upstream model has had. */
export type Calls = Readonly<Record<ModelName, number>>;

/** How many calls are under way. */
export async function activeCalls({ world }: Run): Promise<number> {
  return (await world.gateway.readiness()).active_calls + (await world.front.activeCalls());
}

/** The calls up to now. */
export function countCalls({ world, names }: Run): Calls {
  const entries = Object.entries(names).map(([name, upstream]) => [name, world.upstream.calls(upstream).length]);
  return Object.fromEntries(entries) as Calls;
}

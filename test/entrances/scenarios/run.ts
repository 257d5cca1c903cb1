import type { Mode } from "../../../src/core/router.ts";
import type { Caller } from "./callers/caller.ts";
import type { ModelName, Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** What callers ask for. */
export type Service = "completions" | "embeddings";

/** How callers reach the gateway. */
export type Way =
  | { readonly entrance: "grpc"; readonly service: Service }
  | {
      readonly entrance: "http";
      /** The format that they speak. */
      readonly caller: Caller;
      /** Through a front in another process than the core. Default: one process for both. */
      readonly through?: "front";
    };

/** Title of a way. */
export function nameOf(way: Way): string {
  return way.entrance === "grpc"
    ? `${way.service} over gRPC`
    : `${way.caller.format}${way.through === undefined ? "" : " through a front"}`;
}

/** What callers of a way ask for. */
export function serviceOf(way: Way): Service {
  return way.entrance === "grpc" ? way.service : way.caller.service;
}

/** One scenario on one way in one mode. */
export interface Run {
  readonly world: World;
  readonly scenario: Scenario;
  readonly way: Way;
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
  return (await world.gateway.activeCalls()) + (await world.front.activeCalls());
}

/** Counts the upstream calls so far. */
export function countCalls({ world, names }: Run): Calls {
  const entries = Object.entries(names).map(([name, upstream]) => [name, world.upstream.calls(upstream).length]);
  return Object.fromEntries(entries) as Calls;
}

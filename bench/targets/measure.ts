import { type Start, withLineUp } from "../contestants/line-up.ts";
import { startParley } from "../contestants/parley.ts";
import type { Setting, Targets } from "../contestants/server.ts";
import { TARGETS_LOAD } from "../loads.ts";
import { type LoadResult, summarise } from "../measure/result.ts";
import { type RoundsOptions, runRounds } from "../measure/rounds.ts";

const POOLS: readonly Targets[] = [
  { count: 1, policy: "weighted" },
  { count: 20, policy: "weighted" },
  { count: 20, policy: "least_latency" },
];

/** Compares names with many targets with a name that has one. */
export async function compareTargets(place: Omit<Setting, "load">, options: RoundsOptions): Promise<LoadResult> {
  return withLineUp({ ...place, load: TARGETS_LOAD }, POOLS.map(startWith), async (contestants) =>
    summarise(TARGETS_LOAD, await runRounds(TARGETS_LOAD, contestants, options), nameOf(POOLS[0]!)),
  );
}

function startWith(targets: Targets): Start {
  return async (setting) => ({ ...(await startParley({ ...setting, targets })), name: nameOf(targets) });
}

function nameOf({ count, policy }: Targets): string {
  return count === 1 ? "1 target" : `${count} targets, ${policy}`;
}

import type { AccountingCost } from "./accounting/measure.ts";
import type { LatencyResult } from "./latency/result.ts";
import type { LoadResult } from "./measure/result.ts";
import type { MemoryResult } from "./memory/result.ts";
import type { StartupResult } from "./startup/measure.ts";
import type { ScenarioTable } from "./scenarios/table.ts";
import type { TranslationResult } from "./translate/measure.ts";

/** Results of one run; parts that were not requested are missing. */
export interface Measurements {
  translation?: TranslationResult;
  accounting?: readonly AccountingCost[];
  /** Parley and the floors. */
  readonly loads: LoadResult[];
  readonly latency: LatencyResult[];
  /** Rates, closed loops, bursts, pauses, overload, cold starts. */
  readonly scenarios: ScenarioTable[];
  memory?: readonly MemoryResult[];
  startup?: readonly StartupResult[];
  /** Parley and other gateways. */
  readonly peers: LoadResult[];
  readonly peerTables: ScenarioTable[];
  /** Parley with small and with large data. */
  readonly growth: LoadResult[];
  /** The formats. */
  readonly formats: LoadResult[];
  /** Names with one target and with many. */
  readonly targets: LoadResult[];
  /** One process and two workers. */
  readonly workers: LoadResult[];
}

/** Whether any result is invalid. */
export function hasProblem({ scenarios, peerTables, ...measured }: Measurements): boolean {
  const { loads, peers, growth, formats, targets, workers, latency } = measured;
  if ([...scenarios, ...peerTables].some(({ problems }) => problems.length > 0)) return true;
  return [...loads, ...peers, ...growth, ...formats, ...targets, ...workers, ...latency].some(({ results }) =>
    results.some(({ problem }) => problem !== undefined),
  );
}

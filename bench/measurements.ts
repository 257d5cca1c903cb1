import type { AccountingCost } from "./accounting/measure.ts";
import type { LatencyResult } from "./latency/result.ts";
import type { LoadResult } from "./measure/result.ts";
import type { MemoryResult } from "./memory/result.ts";
import type { StartupResult } from "./startup/measure.ts";
import type { TranslationResult } from "./translate/measure.ts";

/** All that one run has measured; what was not asked for is not there. */
export interface Measurements {
  translation?: TranslationResult;
  accounting?: readonly AccountingCost[];
  /** Parley beside the floors. */
  readonly loads: LoadResult[];
  readonly latency: LatencyResult[];
  memory?: readonly MemoryResult[];
  startup?: readonly StartupResult[];
  /** Parley beside other gateways. */
  readonly peers: LoadResult[];
  /** Parley small beside Parley large. */
  readonly growth: LoadResult[];
  /** One worker process beside two. */
  readonly workers: LoadResult[];
}

/** Whether something that was measured is not a figure. */
export function hasProblem({ loads, peers, growth, workers, latency }: Measurements): boolean {
  return [...loads, ...peers, ...growth, ...workers, ...latency].some(({ results }) =>
    results.some(({ problem }) => problem !== undefined),
  );
}

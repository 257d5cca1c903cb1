import { hasCoresForTwo, PEER_CORE, SECOND_PEER_CORE, SECOND_SERVER_CORE, SERVER_CORE } from "../children.ts";
import { type Start, withLineUp } from "../contestants/line-up.ts";
import { PARLEY, startParley } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { WORKERS_LOADS } from "../loads.ts";
import { type LoadResult, summarise } from "../measure/result.ts";
import { type RoundsOptions, runRounds } from "../measure/rounds.ts";

const ONE = `${PARLEY}, one process`;
const TWO = `${PARLEY}, two workers`;
/** Suffix of a load's name where throughput is a figure. */
export const CORES_FOR_TWO = "a core for each worker";

/**
 * Compares one process with two workers and their parent, with twice the connections. With four cores, workers share
 * theirs only with the parent, and throughput is compared too. With fewer, one of them shares its core with the load and
 * the upstream, and only the cost per request is compared.
 */
export async function* compareWorkers(
  place: Omit<Setting, "load">,
  options: RoundsOptions,
): AsyncGenerator<LoadResult> {
  const where = hasCoresForTwo ? CORES_FOR_TWO : "too few cores: cost only";
  for (const load of WORKERS_LOADS) {
    const named = { ...load, name: `${load.name} for each worker, ${where}` };
    const setting: Setting = { ...place, load: named, ...(hasCoresForTwo && { generatorCore: SECOND_PEER_CORE }) };
    yield await withLineUp(setting, [startOne, startTwo], async (contestants) =>
      summarise(named, await runRounds(named, contestants, options), ONE),
    );
  }
}

const startOne: Start = async (setting) => ({ ...(await startParley(setting)), name: ONE });

const startTwo: Start = async (setting) => {
  const cores = [SERVER_CORE, hasCoresForTwo ? SECOND_SERVER_CORE : PEER_CORE].join(",");
  const server = await startParley({ ...setting, workers: 2, serverCores: cores });
  return { ...server, name: TWO, connections: setting.load.connections * 2 };
};

import { type Start, withLineUp } from "../contestants/line-up.ts";
import { startParley } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { type FormatName, REQUEST_FORMATS } from "../load/formats.ts";
import { FORMATS_LOADS } from "../loads.ts";
import { type LoadResult, summarise } from "../measure/result.ts";
import { type RoundsOptions, runRounds } from "../measure/rounds.ts";

const NAMES = Object.keys(REQUEST_FORMATS) as readonly FormatName[];

/** Compares the formats by the cost of the same conversation, each with a process of its own, with the first one's. */
export async function* compareFormats(
  place: Omit<Setting, "load">,
  options: RoundsOptions,
): AsyncGenerator<LoadResult> {
  for (const load of FORMATS_LOADS) {
    yield await withLineUp({ ...place, load }, NAMES.map(startWith), async (contestants) =>
      summarise(load, await runRounds(load, contestants, options), NAMES[0]!),
    );
  }
}

function startWith(format: FormatName): Start {
  return async (setting) => {
    const { lastWords } = REQUEST_FORMATS[format];
    return { ...(await startParley(setting)), name: format, format, lastWords };
  };
}

import { startByteRelay } from "../contestants/floors.ts";
import { type Start, withLineUp } from "../contestants/line-up.ts";
import { startParley, startParleyInterval } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { UNARY } from "../loads.ts";
import { type RoundsOptions, warmUp } from "../measure/rounds.ts";
import type { Part } from "../options.ts";
import { measureColdStarts } from "./cold-start.ts";
import { ScenarioContestant } from "./contestant.ts";
import {
  OVERLOAD_CONFIG,
  REFUSAL_CONFIG,
  measureBursts,
  measureClosedLoops,
  measureOpenLoops,
  measureOverload,
  measureRefusals,
} from "./loads.ts";
import { measurePauses } from "./pauses.ts";
import type { ScenarioTable } from "./table.ts";

export interface ScenarioOptions extends RoundsOptions {
  readonly parts: readonly Part[];
  readonly long: boolean;
}

/** Measures one scenario with contestants that are warm. */
export type MeasureScenario = (
  contestants: readonly ScenarioContestant[],
  options: ScenarioOptions,
) => Promise<ScenarioTable>;

/** Scenarios that share their servers. Pauses come last: the others are warm then. */
const SHARED: readonly (readonly [Part, MeasureScenario])[] = [
  ["open-loop", measureOpenLoops],
  ["closed-loops", measureClosedLoops],
  ["bursts", measureBursts],
  ["pauses", measurePauses],
];

/** The byte relay, Parley as it comes, and Parley whose answers do not wait for the ledger. */
const STARTS: readonly Start[] = [startByteRelay, startParley, startParleyInterval];

/** Measures the scenarios of the requested parts with the short conversation, one table each. */
export async function* measureScenarios(
  place: Omit<Setting, "load">,
  options: ScenarioOptions,
): AsyncGenerator<ScenarioTable> {
  const setting: Setting = { ...place, load: UNARY };
  const wanted = SHARED.filter(([part]) => options.parts.includes(part)).map(([, measure]) => measure);
  if (wanted.length > 0) yield* await withContestants(setting, STARTS, { options, measures: wanted });
  if (options.parts.includes("overload")) {
    const busy = { ...setting, config: OVERLOAD_CONFIG };
    const starts = [startParley, startParleyInterval];
    yield* await withContestants(busy, starts, { options, measures: [measureOverload] });
    const full = { ...setting, config: REFUSAL_CONFIG };
    yield* await withContestants(full, [startParley], { options, measures: [measureRefusals] });
  }
  if (options.parts.includes("cold-start")) yield measureColdStarts(setting, options);
}

/** Starts these, warms them up, and runs the measurements one after another. */
export async function withContestants(
  setting: Setting,
  starts: readonly Start[],
  { options, measures }: { readonly options: ScenarioOptions; readonly measures: readonly MeasureScenario[] },
): Promise<readonly ScenarioTable[]> {
  return withLineUp(setting, starts, async (linedUp) => {
    for (const contestant of linedUp) await warmUp(UNARY, contestant, options);
    const contestants: ScenarioContestant[] = [];
    try {
      for (const one of linedUp) contestants.push(await ScenarioContestant.start(one));
      const tables: ScenarioTable[] = [];
      for (const measure of measures) tables.push(await measure(contestants, options));
      return tables;
    } finally {
      await Promise.all(contestants.map((contestant) => contestant.stop()));
    }
  });
}

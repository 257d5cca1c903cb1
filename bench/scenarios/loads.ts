import type { ScenarioRequest } from "../load/scenario.ts";
import { cpuUsOf, medianOf, rateOf, type Run, type ScenarioContestant } from "./contestant.ts";
import type { MeasureScenario, ScenarioOptions } from "./measure.ts";
import { inMs, type ScenarioTable, whole } from "./table.ts";

const RATES = [50, 200, 500, 1_000, 2_000] as const;
const CLOSED = [1, 8, 64, 512, 2_048] as const;
const BURSTS = [512, 2_048] as const;
/** Connections of an open loop; no rate has as many calls in flight. */
const OPEN_CONNECTIONS = 256;
/** Fewer rounds than of slices, because runs are longer. */
const MOST_ROUNDS = 3;
/** Long enough for a 99th percentile. */
const LEAST_SECONDS = 2;

/** Runs each request with each contestant in turns. */
async function inTurns(
  contestants: readonly ScenarioContestant[],
  requests: readonly ScenarioRequest[],
  { rounds }: Pick<ScenarioOptions, "rounds">,
): Promise<readonly (readonly (readonly Run[])[])[]> {
  const runs: Run[][][] = requests.map(() => contestants.map(() => []));
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
    for (const [at, request] of requests.entries())
      for (let turn = 0; turn < contestants.length; turn++) {
        const who = (round + turn) % contestants.length;
        runs[at]![who]!.push(await contestants[who]!.run(request));
      }
  return runs;
}

const HEAD = ["", "p50 ms", "p99 ms", "CPU-µs", "per s", "refused"] as const;

function toRow(name: string, runs: readonly Run[]): readonly string[] {
  return [
    name,
    inMs(medianOf(runs, ({ p50Ms }) => p50Ms)),
    inMs(medianOf(runs, ({ p99Ms }) => p99Ms)),
    whole(medianOf(runs, cpuUsOf)),
    whole(medianOf(runs, rateOf)),
    whole(runs.reduce((sum, { refused }) => sum + refused, 0)),
  ];
}

interface Labelled {
  readonly label: string;
  readonly request: ScenarioRequest;
}

async function compareRuns(
  title: string,
  all: readonly Labelled[],
  [contestants, options]: Parameters<MeasureScenario>,
): Promise<ScenarioTable> {
  const runs = await inTurns(
    contestants,
    all.map(({ request }) => request),
    options,
  );
  const rows = all.flatMap(({ label }, at) =>
    contestants.map(({ name }, who) => toRow(`${label}: ${name}`, runs[at]![who]!)),
  );
  return { title, head: HEAD, rows, problems: contestants.flatMap(({ problems }) => problems.splice(0)) };
}

const secondsOf = ({ seconds }: ScenarioOptions): number => Math.max(seconds, LEAST_SECONDS);

/** Makes calls at fixed times, at each of these rates per second. Each call is timed from its scheduled time. */
export function compareOpenLoops(title: string, rates: readonly number[]): MeasureScenario {
  return (contestants, options) => {
    const seconds = secondsOf(options);
    const all = rates.map((perSecond): Labelled => {
      const request = { kind: "open", seconds, perSecond, connections: OPEN_CONNECTIONS } as const;
      return { label: `${whole(perSecond)} a second`, request };
    });
    return compareRuns(title, all, [contestants, options]);
  };
}

export const measureOpenLoops = compareOpenLoops("open loop: calls at fixed times", RATES);

/** The next call on each connection follows its answer. */
export const measureClosedLoops: MeasureScenario = (contestants, options) => {
  const seconds = secondsOf(options);
  const all = CLOSED.map((connections): Labelled => {
    const label = `${whole(connections)} connection${connections === 1 ? "" : "s"}`;
    return { label, request: { kind: "closed", seconds, connections } };
  });
  return compareRuns("closed loop: the next call follows the answer", all, [contestants, options]);
};

/** One call on each of many new connections, all at once. `per s` is their number by the time of the last answer. */
export const measureBursts: MeasureScenario = (contestants, options) => {
  const all = BURSTS.map((connections): Labelled => {
    return { label: `${whole(connections)} new connections`, request: { kind: "burst", connections } };
  });
  return compareRuns("bursts: one call on each of many new connections at once", all, [contestants, options]);
};

/** A second, so that fewer connections than a generator can have are an overload. */
const OVERLOAD_WAIT_MS = 1_000;
/** Additional configuration of Parley for the overload. */
export const OVERLOAD_CONFIG = { overload: { max_wait_ms: OVERLOAD_WAIT_MS } };
const OVERLOAD_CONNECTIONS = 8_000;
const OVERLOAD_SECONDS = 20;
const LONG_OVERLOAD_SECONDS = 60;
const CAPACITY = { kind: "closed", seconds: 3, connections: 64 } as const;

/** Twice as many calls as a contestant can answer. */
export const measureOverload: MeasureScenario = async (contestants, { long }) => {
  const rows: string[][] = [];
  const seconds = long ? LONG_OVERLOAD_SECONDS : OVERLOAD_SECONDS;
  for (const contestant of contestants) {
    const alone = await contestant.run(CAPACITY);
    const perSecond = Math.round(2 * rateOf(alone));
    const over = await contestant.run({ kind: "open", seconds, perSecond, connections: OVERLOAD_CONNECTIONS });
    // The last calls are answered later, those whose connections the kernel refused first by seconds: they are not counted.
    const { answers, refused } = over.inTime;
    rows.push([
      contestant.name,
      whole(rateOf(alone)),
      whole(answers / seconds),
      `${whole((100 * answers) / seconds / rateOf(alone))} %`,
      whole(refused / seconds),
      inMs(over.p50Ms),
      inMs(over.p99Ms),
    ]);
  }
  return {
    title: `overload: twice the capacity for ${seconds} s, max_wait_ms ${whole(OVERLOAD_WAIT_MS)}`,
    head: ["", "capacity/s", "answered/s", "share", "refused/s", "p50 ms", "p99 ms"],
    rows,
    problems: contestants.flatMap(({ problems }) => problems.splice(0)),
  };
};

/** Additional configuration of Parley for refusals: of 64 calls at once all but one are refused. */
export const REFUSAL_CONFIG = { overload: { max_calls: 1 } };

/** The cost of a refusal for overload, with the few answers in between. */
export const measureRefusals: MeasureScenario = async (contestants, options) => {
  const [runs] = await inTurns(contestants, [{ ...CAPACITY, seconds: secondsOf(options) }], options);
  const rows = contestants.map(({ name }, who) => [
    name,
    whole(medianOf(runs![who]!, ({ refused, elapsedMs }) => (refused * 1000) / elapsedMs)),
    medianOf(runs![who]!, ({ usedUs, refused }) => usedUs / refused).toFixed(1),
    `${(100 * medianOf(runs![who]!, ({ answers, refused }) => answers / refused)).toFixed(1)} %`,
  ]);
  return {
    title: "refusals for overload: 64 connections, max_calls 1",
    head: ["", "refused/s", "CPU-µs of one", "answers to refusals"],
    rows,
    problems: contestants.flatMap(({ problems }) => problems.splice(0)),
  };
};

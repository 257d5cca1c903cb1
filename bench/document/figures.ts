import { BYTE_RELAY, NGINX } from "../contestants/floors.ts";
import { PARLEY, PARLEY_INTERVAL } from "../contestants/parley.ts";
import { UNARY } from "../loads.ts";
import type { LoadResult, Result } from "../measure/result.ts";
import type { Measurements } from "../measurements.ts";
import { growthKiB } from "../memory/result.ts";
import { LITELLM } from "../peers/litellm.ts";
import { SHORT_BESIDE_PEERS, STREAMS_BESIDE_PEERS } from "../peers/measure.ts";
import { BUSBAR, GOMODEL_WITH_LOG } from "../peers/named.ts";
import { PORTKEY } from "../peers/portkey.ts";
import { CORES_FOR_TWO } from "../workers/measure.ts";

/** One measured value of Parley with its limit. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly limit: number;
  /** Unit of value and limit; empty for a ratio. */
  readonly unit: string;
}

/** Whether the figure is within its limit; false for NaN. */
export function isReached({ value, limit }: Figure): boolean {
  return value <= limit;
}

/** Maximum ratio of Parley's cost to the floor's, by load. */
const MOST_COST: Readonly<Record<string, number>> = {
  "unary, 64 connections": 3.2,
  "unary, 50 messages (30 kB)": 1.8,
  "unary, 75,000 tokens (300 kB)": 3,
  "unary with tools": 1.8,
  "100 streams paced at 100 chunks/s each": 1.3,
  "100 streams flat out": 2.5,
  "gRPC unary, 8 × 8": 2,
  "gRPC streams flat out, 8 × 8": 1.4,
  "image reply of 4 MB, 16 at once": 2.5,
};

/** Maximum ratio for whole answers that do not wait for the ledger. */
const MOST_COST_WITH_INTERVAL = 2.6;
/** Maximum ratio to nginx's cost, with short whole answers. */
const MOST_TO_NGINX = 5;
const MOST_LOOP_DELAY_MS = 20;
const MOST_ADDED_P50_MS = 0.5;
const MOST_ADDED_P99_MS = 3;
const MOST_AT_REST_MIB = 170;
const MOST_PER_STREAM_KIB = 48;
/** Growth that counts as flat, as a share of the memory under load. */
const MOST_MEMORY_GROWTH = 0.05;
const MOST_START_MS = 500;
const MOST_GROWTH = 1.1;
/** Maximum ratio of a format's cost to that of chat completions, for the same conversation. */
const MOST_FOR_FORMAT = 1.25;
const MOST_FOR_TARGETS = 1.03;
/** Two workers have to reach 1.8 times the throughput of one, so a request may cost 2 / 1.8 times as much. */
const MOST_FOR_TWO_WORKERS = 2 / 1.8;
const MOST_TIME_OF_TWO_WORKERS = 1 / 1.8;
/** Maximum ratio to the cost of other gateways, by load. */
const MOST_TO_PEERS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  [SHORT_BESIDE_PEERS]: { [BUSBAR]: 1.2, [GOMODEL_WITH_LOG]: 0.35, [PORTKEY]: 0.2, [LITELLM]: 0.015 },
  [STREAMS_BESIDE_PEERS]: { [PORTKEY]: 1 / 3 },
};

/** All valid figures of a run that have a limit. */
export function figuresOf(measured: Measurements): readonly Figure[] {
  return [
    ...measured.loads.flatMap(loadFigures),
    ...measured.peers.flatMap(peerFigures),
    ...latencyFigures(measured),
    ...memoryFigures(measured),
    ...(measured.startup ?? [])
      .filter(({ contestant }) => contestant === PARLEY)
      .map(({ medianMs }) => ({ what: "start, median", value: medianMs, limit: MOST_START_MS, unit: "ms" })),
    ...measured.growth.flatMap((result) => ratioFigures(result, { what: "cost, large to small", limit: MOST_GROWTH })),
    ...measured.formats.flatMap(formatFigures),
    ...measured.targets.flatMap((result) =>
      ratioFigures(result, { what: "cost, 20 targets to 1", limit: MOST_FOR_TARGETS }),
    ),
    ...measured.workers.flatMap((result) => [
      ...ratioFigures(result, { what: "cost, two workers to one", limit: MOST_FOR_TWO_WORKERS }),
      ...paceFigures(result),
    ]),
  ];
}

/** The contestant's result, if it is valid. */
export function resultOf({ results }: LoadResult, contestant: string): Result | undefined {
  return results.find((result) => result.contestant === contestant && result.problem === undefined);
}

/** Cost ratios of the second and later contestants to the first. */
function ratioFigures(
  { load, results }: LoadResult,
  { what, limit }: { readonly what: string; readonly limit: number },
): readonly Figure[] {
  return results
    .filter(({ problem }) => problem === undefined)
    .slice(1)
    .map(({ ratio }) => ({ what: `${what}: ${load}`, value: ratio.median, limit, unit: "" }));
}

function formatFigures({ load, floor, results }: LoadResult): readonly Figure[] {
  return results
    .filter(({ contestant, problem }) => contestant !== floor && problem === undefined)
    .map(({ contestant, ratio }) => ({
      what: `cost of ${contestant} to ${floor}: ${load}`,
      value: ratio.median,
      limit: MOST_FOR_FORMAT,
      unit: "",
    }));
}

/** Time per request of two workers relative to one, where each has a core. */
function paceFigures({ load, results: [one, two] }: LoadResult): readonly Figure[] {
  if (!load.endsWith(CORES_FOR_TWO) || one?.problem !== undefined || two?.problem !== undefined) return [];
  const value = (one?.unitsPerSecond ?? Number.NaN) / (two?.unitsPerSecond ?? Number.NaN);
  return [{ what: `time, two workers to one: ${load}`, value, limit: MOST_TIME_OF_TWO_WORKERS, unit: "" }];
}

function loadFigures(result: LoadResult): readonly Figure[] {
  const { load, floor, loopDelays = [] } = result;
  const parley = resultOf(result, PARLEY);
  const bare = resultOf(result, floor);
  if (parley === undefined || bare === undefined) return [];
  const limit = MOST_COST[load];
  if (limit === undefined) return [];
  const [nginx, interval] = load === UNARY.name ? [resultOf(result, NGINX), resultOf(result, PARLEY_INTERVAL)] : [];
  return [
    { what: `cost to the ${floor}: ${load}`, value: parley.ratio.median, limit, unit: "" },
    ...(nginx === undefined
      ? []
      : [
          {
            what: `cost to ${NGINX}: ${load}`,
            value: parley.cpuUs.median / nginx.cpuUs.median,
            limit: MOST_TO_NGINX,
            unit: "",
          },
        ]),
    ...(interval === undefined
      ? []
      : [
          {
            what: `cost of ${PARLEY_INTERVAL} to the ${floor}: ${load}`,
            value: interval.ratio.median,
            limit: MOST_COST_WITH_INTERVAL,
            unit: "",
          },
        ]),
    ...loopDelays
      .filter(({ contestant }) => contestant === PARLEY)
      .map(({ p999Ms }) => ({
        what: `event loop delay, p99.9: ${load}`,
        value: p999Ms,
        limit: MOST_LOOP_DELAY_MS,
        unit: "ms",
      })),
  ];
}

function peerFigures(result: LoadResult): readonly Figure[] {
  const parley = resultOf(result, PARLEY);
  if (parley === undefined) return [];
  return Object.entries(MOST_TO_PEERS[result.load] ?? {}).flatMap(([name, limit]) => {
    const peer = resultOf(result, name);
    if (peer === undefined) return [];
    const value = parley.cpuUs.median / peer.cpuUs.median;
    return [{ what: `cost to ${name}: ${result.load}`, value, limit, unit: "" }];
  });
}

function latencyFigures({ latency }: Measurements): readonly Figure[] {
  return latency.flatMap(({ load, results }) =>
    results
      .filter(({ contestant, problem }) => contestant === PARLEY && problem === undefined)
      .flatMap(({ addedP50Ms, addedP99Ms }) => [
        { what: `added latency, p50: ${load}`, value: addedP50Ms, limit: MOST_ADDED_P50_MS, unit: "ms" },
        { what: `added latency, p99: ${load}`, value: addedP99Ms, limit: MOST_ADDED_P99_MS, unit: "ms" },
      ]),
  );
}

function memoryFigures({ memory = [] }: Measurements): readonly Figure[] {
  const parley = memory.find(({ contestant }) => contestant !== BYTE_RELAY);
  if (parley === undefined) return [];
  const { atRestKiB, perStreamKiB, streams, samples } = parley;
  const last = samples.at(-1) ?? { requests: 0, kiB: Number.NaN };
  const [many, requests] = [streams, last.requests].map((count) => count.toLocaleString("en"));
  return [
    { what: "memory of the idle process", value: atRestKiB / 1024, limit: MOST_AT_REST_MIB, unit: "MiB" },
    { what: `memory per open stream, ${many} open`, value: perStreamKiB, limit: MOST_PER_STREAM_KIB, unit: "KiB" },
    {
      what: `memory growth in the second half of ${requests} requests`,
      value: growthKiB(samples) / 1024,
      limit: (last.kiB / 1024) * MOST_MEMORY_GROWTH,
      unit: "MiB",
    },
  ];
}

import { stopChild } from "../children.ts";
import { BYTE_RELAY, startByteRelay } from "../contestants/floors.ts";
import { type Home, launch, makeHome, PARLEY } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { median } from "../measure/statistics.ts";
import { formatTable } from "../report.ts";

/** Times from the start of a process until it serves requests. */
export interface StartupResult {
  readonly contestant: string;
  readonly timesMs: readonly number[];
  readonly medianMs: number;
}

const STARTS = 10;

/** Starts Parley repeatedly on an existing data directory, and the byte relay in turns. */
export async function measureStartup(setting: Setting): Promise<readonly StartupResult[]> {
  const home = makeHome(setting);
  // Creates the data directory.
  await timeParley(home);
  const relayMs: number[] = [];
  const parleyMs: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    relayMs.push(await timeRelay(setting));
    parleyMs.push(await timeParley(home));
  }
  return [
    { contestant: BYTE_RELAY, timesMs: relayMs, medianMs: median(relayMs) },
    { contestant: PARLEY, timesMs: parleyMs, medianMs: median(parleyMs) },
  ];
}

async function timeRelay(setting: Setting): Promise<number> {
  const startedMs = performance.now();
  const { process } = await startByteRelay(setting);
  const elapsedMs = performance.now() - startedMs;
  await stopChild(process);
  return elapsedMs;
}

/** Time until Parley prints that it is ready; throws when `/readyz` then disagrees. */
async function timeParley(home: Home): Promise<number> {
  const startedMs = performance.now();
  const { child, operationsPort } = await launch(home);
  const elapsedMs = performance.now() - startedMs;
  try {
    const { status } = await fetch(`http://127.0.0.1:${operationsPort}/readyz`);
    if (status !== 200) throw new Error(`Parley printed that it is ready, but /readyz answers ${status}`);
  } finally {
    await stopChild(child);
  }
  return elapsedMs;
}

/** The times as a table for a terminal. */
export function formatStartup(results: readonly StartupResult[]): string {
  const rows = results.map(({ contestant, timesMs, medianMs }) => [
    contestant,
    ...[medianMs, Math.min(...timesMs), Math.max(...timesMs)].map((ms) => ms.toFixed(0)),
  ]);
  const title = `start on an existing data directory, ${STARTS} times: ms until it serves`;
  return [title, ...formatTable([["", "median", "least", "most"], ...rows])].join("\n");
}

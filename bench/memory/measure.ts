import { setTimeout as delay } from "node:timers/promises";
import { stopChild } from "../children.ts";
import { startByteRelay } from "../contestants/floors.ts";
import { type LinedUp, withLineUp } from "../contestants/line-up.ts";
import { startOpenStreams } from "../contestants/open-streams.ts";
import { startParley } from "../contestants/parley.ts";
import type { Setting } from "../contestants/server.ts";
import { heldStream, UNARY } from "../loads.ts";
import { residentKiB } from "../measure/resident.ts";
import { type RoundsOptions, runSlice, warmUp } from "../measure/rounds.ts";
import type { MemoryResult, MemorySample } from "./result.ts";

/** Sizes of the memory measurement. */
export interface MemorySize {
  readonly requests: number;
  readonly streams: number;
}

/** Sizes for a run of all parts. */
export const USUAL_SIZE: MemorySize = { requests: 40_000, streams: 5_000 };
/** Sizes that take some minutes. */
export const LONG_SIZE: MemorySize = { requests: 2_000_000, streams: 5_000 };

/** Time for garbage collection of an idle process. */
const REST_MS = 45_000;
/** Time to settle after streams were opened or ended. */
const SETTLE_MS = 3_000;
/** Number of memory samples under requests. */
const SAMPLES = 40;
/** Interval of each open stream's events. */
const EVERY_MS = 1_000;
/** Streams that are opened and ended before the measured ones. */
const WARM_UP_STREAMS = 500;

const STARTS = [startByteRelay, startParley] as const;

/**
 * Memory of the byte relay and of Parley: idle, under requests, and with many streams open. `whileResting` is done
 * during the idle time.
 */
export async function measureMemory(
  place: Omit<Setting, "load">,
  options: RoundsOptions & { readonly whileResting: () => Promise<void> },
  size: MemorySize,
): Promise<readonly MemoryResult[]> {
  // Both are idle at the same time, and sampled one after the other.
  const underRequests = await withLineUp({ ...place, load: UNARY }, STARTS, async (contestants) => {
    for (const contestant of contestants) await warmUp(UNARY, contestant, options);
    await Promise.all([delay(REST_MS), options.whileResting()]);
    const rested = contestants.map((contestant) => ({ contestant, atRestKiB: residentKiB(contestant.server) }));
    const results: Omit<MemoryResult, "perStreamKiB" | "streams">[] = [];
    for (const { contestant, atRestKiB } of rested) {
      const samples = await sampleUnderRequests(contestant, size.requests, options);
      results.push({ contestant: contestant.name, atRestKiB, samples });
    }
    return results;
  });
  const results: MemoryResult[] = [];
  for (const [index, result] of underRequests.entries()) {
    const perStreamKiB = await measureStreams(place, STARTS[index]!, size.streams);
    results.push({ ...result, perStreamKiB, streams: size.streams });
  }
  return results;
}

async function sampleUnderRequests(
  { server, generator }: LinedUp,
  requests: number,
  { seconds }: RoundsOptions,
): Promise<readonly MemorySample[]> {
  const samples: MemorySample[] = [];
  let made = 0;
  while (made < requests) {
    const { answers, firstWrong } = await runSlice(generator, seconds);
    if (answers === 0) throw new Error(`no correct answers: ${firstWrong}`);
    made += answers;
    if (made >= ((samples.length + 1) * requests) / SAMPLES) samples.push({ requests: made, kiB: residentKiB(server) });
  }
  return samples;
}

async function measureStreams(
  place: Omit<Setting, "load">,
  start: (typeof STARTS)[number],
  count: number,
): Promise<number> {
  const load = heldStream("memory", EVERY_MS);
  const server = await start({ ...place, load });
  try {
    const streams = await startOpenStreams(load, server);
    try {
      await streams.hold(WARM_UP_STREAMS);
      await streams.hold(0);
      await delay(SETTLE_MS);
      const before = residentKiB(server.process.pid!);
      await streams.hold(count);
      await delay(SETTLE_MS);
      const after = residentKiB(server.process.pid!);
      // Checks that all are still open.
      await streams.hold(count);
      return (after - before) / count;
    } finally {
      await streams.stop();
    }
  } finally {
    await stopChild(server.process);
  }
}

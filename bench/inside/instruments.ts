// Loaded into a server under test by --import: measures event loop delay and profiles on requests over the IPC channel.
// Without a request it costs nothing.
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

/** Requests of the benchmark; each is answered with one message. */
export type Question =
  | { readonly ask: "watch the loop" | "read the loop" | "sample allocations" }
  | { readonly ask: "write allocations"; readonly file: string };

/** Event loop delay in milliseconds. */
export interface LoopDelay {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/** Resolution of the event loop delay histogram. */
const TICK_MS = 1;
/** Average bytes between two samples: some hundred thousand samples in a profile of some seconds. */
const SAMPLE_BYTES = 16 * 1024;

let histogram: ReturnType<typeof monitorEventLoopDelay> | undefined;
let session: Session | undefined;

async function answer(question: Question): Promise<object> {
  switch (question.ask) {
    case "watch the loop":
      histogram ??= monitorEventLoopDelay({ resolution: TICK_MS });
      histogram.reset();
      histogram.enable();
      return {};
    case "read the loop":
      return readLoop();
    case "sample allocations":
      session = new Session();
      session.connect();
      // Most objects of a request are collected before the profile is read.
      await session.post("HeapProfiler.startSampling", {
        samplingInterval: SAMPLE_BYTES,
        includeObjectsCollectedByMajorGC: true,
        includeObjectsCollectedByMinorGC: true,
      });
      return {};
    case "write allocations": {
      const stopped = await session?.post("HeapProfiler.stopSampling");
      session?.disconnect();
      writeFileSync(question.file, JSON.stringify(stopped?.profile));
      return {};
    }
  }
}

function readLoop(): LoopDelay {
  if (histogram === undefined) throw new Error("the event loop is not being watched");
  histogram.disable();
  // The histogram has the time between two ticks.
  const late = (ns: number): number => Math.max(0, ns / 1e6 - TICK_MS);
  const at = (percentile: number): number => late(histogram!.percentile(percentile));
  return { p50Ms: at(50), p99Ms: at(99), p999Ms: at(99.9), maxMs: late(histogram.max) };
}

if (isMainThread && process.send !== undefined) {
  process.on("message", (question: Question) => void answer(question).then((reply) => process.send?.(reply)));
  // The channel must not keep the server alive.
  process.channel?.unref();
}

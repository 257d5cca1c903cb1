// Loaded into a server under test by --import: measures from inside what cannot be seen from outside, when the
// benchmark asks for it over the process's channel. Until then it costs nothing.
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

/** What the benchmark may ask; every question is answered with one message. */
export type Question =
  | { readonly ask: "watch the loop" | "read the loop" | "sample allocations" }
  | { readonly ask: "write allocations"; readonly file: string };

/** How late the event loop was, in milliseconds. */
export interface LoopDelay {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/** The clock of the event loop's delay ticks so often. */
const TICK_MS = 1;
/** Bytes between two samples on average: some hundred thousand samples in a profile of some seconds. */
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
      // Most of what a request allocates is collected before anybody looks.
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
  if (histogram === undefined) throw new Error("nobody has watched the loop");
  histogram.disable();
  // What is recorded is the time between two ticks.
  const late = (ns: number): number => Math.max(0, ns / 1e6 - TICK_MS);
  const at = (percentile: number): number => late(histogram!.percentile(percentile));
  return { p50Ms: at(50), p99Ms: at(99), p999Ms: at(99.9), maxMs: late(histogram.max) };
}

if (isMainThread && process.send !== undefined) {
  process.on("message", (question: Question) => void answer(question).then((reply) => process.send?.(reply)));
  // The server ends when it wants to.
  process.channel?.unref();
}

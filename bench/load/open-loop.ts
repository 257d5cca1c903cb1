// An open-loop load generator: calls are sent at fixed times, and each is timed from its scheduled time, which avoids
// coordinated omission. One process per contestant and load.
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { endWithParent } from "../child.ts";
import { type Assignment, emptyTally, type Tally } from "./caller.ts";
import { createHttpCaller } from "./http-caller.ts";
import { type Beat, nowMs } from "./metronome.ts";

/** Starts one slice. */
export interface OpenLoopRequest {
  readonly seconds: number;
  readonly perSecond: number;
}

/** Result of one slice. */
export interface OpenLoopReply extends Tally {
  /** Time of each call until its answer; for streams until the first content. */
  readonly latenciesMs: readonly number[];
}

/** Delay of a slice's first call, so that it is not late. */
const LEAD_MS = 5;

const assignment = JSON.parse(process.argv[2]!) as Assignment;
const { load } = assignment;
const metronome = new Worker(join(import.meta.dirname, "metronome.ts"));
let tally = emptyTally();
let latenciesMs: number[] = [];

interface Connection {
  /** Scheduled time of the call in flight. */
  dueMs: number;
  ask(): Promise<void>;
}

const idle: Connection[] = Array.from({ length: load.connections }, () => {
  const connection: Connection = {
    dueMs: 0,
    ask: () => {
      let left = 1;
      return caller.run(() => left-- > 0);
    },
  };
  const arrived = (): void => void latenciesMs.push(nowMs() - connection.dueMs);
  const caller = createHttpCaller(
    assignment,
    () => tally,
    load.streamed ? { onFirstMark: arrived } : { onEnd: arrived },
  );
  return connection;
});

process.on("message", (request: OpenLoopRequest) => void runSlice(request).then((reply) => process.send?.(reply)));
process.send?.({});
endWithParent();

async function runSlice({ seconds, perSecond }: OpenLoopRequest): Promise<OpenLoopReply> {
  tally = emptyTally();
  latenciesMs = [];
  const intervalMs = 1000 / perSecond;
  const count = Math.max(1, Math.round(seconds * perSecond));
  const startMs = nowMs() + LEAD_MS;
  const waiting: number[] = [];
  let made = 0;
  let answered = 0;
  await new Promise<void>((resolve) => {
    const begin = (): void => {
      while (waiting.length > 0 && idle.length > 0) {
        const connection = idle.pop()!;
        connection.dueMs = waiting.shift()!;
        void connection.ask().then(() => {
          idle.push(connection);
          return ++answered === count ? resolve() : begin();
        });
      }
    };
    metronome.removeAllListeners("message").on("message", (due: number) => {
      for (let call = 0; call < due; call++) waiting.push(startMs + made++ * intervalMs);
      begin();
    });
    metronome.postMessage({ startMs, intervalMs, count } satisfies Beat, []);
  });
  return { ...tally, latenciesMs };
}

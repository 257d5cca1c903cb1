// A load generator that does not wait for answers: calls are made at fixed times, and each is timed from the moment at
// which it was to be made, so that a server that falls behind cannot hide it. One process per contestant and load.
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { endWithParent } from "../child.ts";
import { type Assignment, emptyTally, type Tally } from "./caller.ts";
import { createHttpCaller } from "./http-caller.ts";
import { type Beat, nowMs } from "./metronome.ts";

/** Asks for one slice. */
export interface OpenLoopRequest {
  readonly seconds: number;
  readonly perSecond: number;
}

/** What came of one slice. */
export interface OpenLoopReply extends Tally {
  /** Of each call, until its answer was there; of a stream until its first content was. */
  readonly latenciesMs: readonly number[];
}

/** Before the first call of a slice, so that it is not late already. */
const LEAD_MS = 5;

const assignment = JSON.parse(process.argv[2]!) as Assignment;
const { load } = assignment;
const metronome = new Worker(join(import.meta.dirname, "metronome.ts"));
let tally = emptyTally();
let latenciesMs: number[] = [];

interface Connection {
  /** When the call under way was to be made. */
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

// A load generator for scenarios: calls at fixed times, closed loops of any size, bursts on new connections. One process per
// contestant. Each message is one run, answered with its outcome.
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { endWithParent } from "../child.ts";
import { type Assignment, type Caller, emptyTally, type Tally } from "./caller.ts";
import { createHttpCaller } from "./http-caller.ts";
import { type Beat, nowMs } from "./metronome.ts";

/** One run. `open`: calls at fixed times, timed from then; `connections` at most are in flight, further calls wait. */
export type ScenarioRequest =
  | { readonly kind: "open"; readonly seconds: number; readonly perSecond: number; readonly connections: number }
  | { readonly kind: "closed"; readonly seconds: number; readonly connections: number }
  /** One call on each of `connections` new connections, all at once. */
  | { readonly kind: "burst"; readonly connections: number };

/** Outcome of one run. */
export interface ScenarioReply extends Tally {
  /** Times of all answers, refusals included. */
  readonly latenciesMs: readonly number[];
  /** From the first call to the last answer. */
  readonly elapsedMs: number;
  /** Right answers and refusals within the seconds in which calls began; of a burst all of them. */
  readonly inTime: Pick<Tally, "answers" | "refused">;
}

/** Delay of the first scheduled call, so that it is not late. */
const LEAD_MS = 5;

const assignment = JSON.parse(process.argv[2]!) as Assignment;
const metronome = new Worker(join(import.meta.dirname, "metronome.ts"));
let tally = emptyTally();
let latenciesMs: number[] = [];

/** A connection with one call at a time. */
interface Connection {
  /** Time from which the call in flight is timed. */
  sinceMs: number;
  readonly caller: Caller;
}

const idle: Connection[] = [];

process.on("message", (request: ScenarioRequest) => void run(request).then((reply) => process.send?.(reply)));
process.send?.({});
endWithParent();

async function run(request: ScenarioRequest): Promise<ScenarioReply> {
  tally = emptyTally();
  latenciesMs = [];
  const startedMs = nowMs();
  let inTime: ScenarioReply["inTime"] | undefined;
  const timer =
    request.kind === "burst" ? undefined : setTimeout(() => (inTime = { ...tally }), request.seconds * 1000);
  if (request.kind === "open") await openLoop(request);
  else if (request.kind === "closed") await closedLoop(request);
  else await Promise.all(Array.from({ length: request.connections }, () => callOnce(connection(), nowMs())));
  clearTimeout(timer);
  return { ...tally, latenciesMs, elapsedMs: nowMs() - startedMs, inTime: inTime ?? tally };
}

function connection(): Connection {
  const made: Connection = {
    sinceMs: 0,
    caller: createHttpCaller(assignment, () => tally, {
      onEnd: () => void latenciesMs.push(nowMs() - made.sinceMs),
    }),
  };
  return made;
}

function callOnce(one: Connection, sinceMs: number): Promise<void> {
  let left = 1;
  one.sinceMs = sinceMs;
  return one.caller.run(() => left-- > 0);
}

async function closedLoop({ seconds, connections }: Extract<ScenarioRequest, { kind: "closed" }>): Promise<void> {
  while (idle.length < connections) idle.push(connection());
  const endMs = nowMs() + seconds * 1000;
  await Promise.all(
    idle.slice(0, connections).map((one) =>
      one.caller.run(() => {
        one.sinceMs = nowMs();
        return one.sinceMs < endMs;
      }),
    ),
  );
}

async function openLoop({
  seconds,
  perSecond,
  connections,
}: Extract<ScenarioRequest, { kind: "open" }>): Promise<void> {
  const intervalMs = 1000 / perSecond;
  const count = Math.max(1, Math.round(seconds * perSecond));
  const startMs = nowMs() + LEAD_MS;
  const waiting: number[] = [];
  let free = connections - idle.length;
  let made = 0;
  let answered = 0;
  await new Promise<void>((resolve) => {
    const begin = (): void => {
      while (waiting.length > 0 && (idle.length > 0 || free > 0)) {
        if (idle.length === 0) free -= 1;
        const one = idle.pop() ?? connection();
        void callOnce(one, waiting.shift()!).then(() => {
          idle.push(one);
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
}

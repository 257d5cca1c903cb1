import type { Completion } from "../../../gen/parley/v1/completion_pb.js";
import type { Call } from "../../../src/core/call.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { Model } from "../../../src/core/model.ts";
import type { Emit } from "../../../src/core/provider.ts";
import type { OpenCall } from "../../../src/inbound/calls.ts";
import { type Drainable, drained } from "../../../src/inbound/drain.ts";
import type { Chance } from "./chance.ts";
import type { Journey } from "./journey.ts";
import type { KeyDirectory } from "./key-directory.ts";
import type { SimulatedProcess } from "./process.ts";
import type { Watch } from "./watch.ts";

/** Dependencies of a caller and the entrance. */
export interface EntrancePorts {
  /** The callers' clock: it continues when a process is killed. */
  readonly clock: Clock;
  readonly chance: Chance;
  readonly keys: KeyDirectory;
  readonly watch: Watch;
}

/** Handles one call as the entrances do, without sockets: `inbound/grpc/handlers.ts` and `inbound/http/completion.ts`. */
export async function answer(process: SimulatedProcess, journey: Journey, ports: EntrancePorts): Promise<void> {
  const { clock, keys, watch } = ports;
  const { habits, key, number } = journey;
  const open = process.calls.open(habits.deadlineMs);
  const sinceMs = clock.monotonic();
  const { leavesAfterMs } = habits;
  const callOff = leavesAfterMs === undefined ? () => undefined : clock.after(leavesAfterMs, () => open.leave());
  Object.assign(journey, { arrivedMs: sinceMs, signal: open.signal, hangUp: callOff });
  let finished = (): void => undefined;
  try {
    const principal = await process.authenticator.authenticate(key.secret);
    keys.judge(key, { sinceMs, journey: number });
    journey.isAsked = true;
    // The simulation has no routes.
    journey.primary = process.router.find(journey.request.model) as Model | undefined;
    const call: Call = {
      principal,
      requestId: `req-${number}`,
      completionId: journey.id,
      entrance: "grpc",
      attribution: journey.attribution,
      signal: open.signal,
      expiresMs: open.expiresMs,
      arrivedMs: sinceMs,
      admitted: () => {
        if (journey.isAdmitted) watch.breach("limits", "it was admitted twice", number);
        journey.isAdmitted = true;
        finished = process.admitted(journey);
        watch.note("admitted", number);
      },
    };
    // Core releases the request; the checks need a copy.
    const request = { ...journey.request };
    if (journey.isStream)
      await process.completions.stream(request, call, reading(journey, { ...ports, open, process }));
    else receiveWhole(await process.completions.create(request, call), journey, watch);
  } catch (reason) {
    journey.failure = Failure.from(reason);
    // As over HTTP: the rest of what the caller does not read is dropped with its connection.
    if (journey.isWriting) open.leave();
  } finally {
    callOff();
    finished();
    open.close();
    journey.endedMs = clock.monotonic();
    watch.note(`ended: ${journey.failure?.code ?? (journey.isReported ? "served" : "left")}`, number);
  }
}

interface StreamPorts extends EntrancePorts {
  readonly open: OpenCall;
  readonly process: SimulatedProcess;
}

/** Reads a stream as its caller does, which may cancel or read slowly. */
function reading(journey: Journey, { clock, chance, watch, open, process }: StreamPorts): Emit {
  const { takes, pauses, pauseMs } = journey.habits;
  return (batch) => {
    const wrong = journey.receive(batch);
    if (wrong !== undefined) watch.breach("chunks", wrong, journey.number);
    if (journey.batches >= takes) {
      open.leave();
      return undefined;
    }
    if (pauses === 0 || !chance.percent(pauses)) return undefined;
    const reader = new SlowReader(clock, pauseMs);
    journey.hangUp = () => reader.close();
    journey.isWriting = true;
    return drained(reader, { clock: process.clock, call: open, bytes: 16 }).finally(() => (journey.isWriting = false));
  };
}

function receiveWhole({ choices, usage, model, report }: Completion, journey: Journey, watch: Watch): void {
  journey.servedModel = model;
  journey.usage = usage;
  journey.isReported = report !== undefined;
  const parts = choices.flatMap(({ message }) => message?.parts ?? []);
  journey.text = parts.map(({ kind }) => (kind.case === "text" ? kind.value : kind.case)).join("|");
  if (choices.length !== 1) watch.breach("chunks", `${choices.length} choices`, journey.number);
}

/** A caller whose flow-control window is full, and which continues to read after a while, or never. */
class SlowReader implements Drainable {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  #callOff = (): void => undefined;

  constructor(clock: Clock, pauseMs: number) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
  }

  once(_event: "drain", listener: () => void): void {
    if (Number.isFinite(this.#pauseMs)) this.#callOff = this.#clock.after(this.#pauseMs, listener);
  }

  off(): void {
    this.#callOff();
  }

  close(): void {
    this.#callOff();
  }
}

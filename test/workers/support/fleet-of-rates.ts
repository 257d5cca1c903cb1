import { EventEmitter } from "node:events";
import { createMemoryRates, type MemoryRates } from "../../../src/limits/memory.ts";
import { NOTHING } from "../../../src/limits/credits.ts";
import type { ParentCalls, WorkerCalls } from "../../../src/workers/calls.ts";
import { Channel, type Peer } from "../../../src/workers/channel.ts";
import { ParentRates } from "../../../src/workers/parent-rates.ts";
import { createWorkerRates, type WorkerRates } from "../../../src/workers/worker-rates.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

export const BURST_MS = 60_000;

/** One end of a pipe between two processes, whose messages arrive when the test delivers them. */
class End extends EventEmitter implements Peer {
  connected = true;
  /** Messages that this end has not received yet. */
  readonly arriving: string[] = [];
  other!: End;
  sent = 0;

  send(message: object, callback: (error: Error | null) => void): boolean {
    this.sent += 1;
    this.other.arriving.push(JSON.stringify(message));
    callback(null);
    return true;
  }

  /** Receives the next message; false when there is none. */
  receive(): boolean {
    const message = this.arriving.shift();
    if (message !== undefined) this.emit("message", JSON.parse(message));
    return message !== undefined;
  }
}

export interface WorkerOfRates {
  readonly name: string;
  readonly rates: WorkerRates;
  readonly clock: FakeClock;
  /** The ends of its pipe: the parent's and its own. */
  readonly ends: readonly [End, End];
}

/** The rates of a parent and its workers, with the real channels between them. */
export class FleetOfRates {
  readonly workers: WorkerOfRates[] = [];
  readonly parent: ParentRates;
  /** The parent's clock. */
  readonly clock = new FakeClock();
  #started = 0;

  /** `watch` wraps the parent's store. */
  constructor(size: number, watch = (store: MemoryRates): MemoryRates => store) {
    const { clock } = this;
    this.parent = new ParentRates({ clock, store: watch(createMemoryRates({ clock, burstMs: BURST_MS })) });
    for (let index = 0; index < size; index++) this.workers.push(this.#start());
  }

  /** Kills a worker and starts its successor. Messages that it has sent still arrive. */
  async replace(index: number): Promise<void> {
    const { name, rates, ends } = this.workers[index]!;
    await rates.close();
    while (ends[0].receive()) await settle();
    for (const end of ends) {
      end.connected = false;
      end.emit("disconnect");
    }
    await this.parent.leave({ name });
    this.workers[index] = this.#start();
  }

  /** Delivers messages until there are none. */
  async deliverAll(): Promise<void> {
    do await turns();
    while (this.workers.flatMap(({ ends }) => ends).filter((end) => end.receive()).length > 0);
  }

  /** Lets time pass without a message, and for a worker that is stopped without its timers. */
  advance(ms: number, stopped?: WorkerOfRates): void {
    this.clock.advance(ms);
    for (const worker of this.workers) if (worker !== stopped) worker.clock.advance(ms);
  }

  /** Lets time pass, with messages that take none. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 25) {
      this.advance(25);
      await this.deliverAll();
    }
  }

  #start(): WorkerOfRates {
    const name = `worker-${++this.#started}`;
    const [ours, theirs] = [new End(), new End()];
    [ours.other, theirs.other] = [theirs, ours];
    const worker = new Channel<ParentCalls>(theirs, {
      recallCredit: (subject: string) => rates?.recallCredit(subject) ?? NOTHING,
    });
    const clock = new FakeClock();
    const rates: WorkerRates = createWorkerRates(worker, { burstMs: BURST_MS, clock });
    const channel: Channel<WorkerCalls> = new Channel<WorkerCalls>(ours, {
      rates: (message: ParentCalls["rates"]["input"]) =>
        this.parent.perform({ name, ask: (...call) => channel.ask(...call) }, message),
    });
    return { name, rates, clock, ends: [ours, theirs] };
  }
}

/** Two turns of the event loop: the workers send at the end of one. */
export async function turns(): Promise<void> {
  await settle();
  await settle();
}

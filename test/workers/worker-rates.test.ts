import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { LEASE_MS, RENEW_MS } from "../../src/limits/rates.ts";
import type { ParentCalls, WorkerCalls } from "../../src/workers/calls.ts";
import { Channel, type Peer } from "../../src/workers/channel.ts";
import { type Borrower, ParentRates } from "../../src/workers/parent-rates.ts";
import { createWorkerRates } from "../../src/workers/worker-rates.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { FakeClock } from "../support/fake-clock.ts";

const BURST_MS = 60_000;

/** One end of a channel. What arrives waits while it is stopped. */
class End extends EventEmitter implements Peer {
  readonly connected = true;
  other!: End;
  #waiting: object[] | undefined;

  send(message: object): boolean {
    setImmediate(() => this.other.arrive(message));
    return true;
  }

  arrive(message: object): void {
    if (this.#waiting === undefined) this.emit("message", message);
    else this.#waiting.push(message);
  }

  stop(): void {
    this.#waiting = [];
  }

  continue(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const message of waiting) this.arrive(message);
  }
}

function setUp() {
  const clock = new FakeClock();
  const [atParent, atWorker] = [new End(), new End()];
  [atParent.other, atWorker.other] = [atWorker, atParent];
  const parent = new ParentRates({ clock, store: createMemoryRates({ clock, burstMs: BURST_MS }) });
  const channel: Channel<WorkerCalls> = new Channel<WorkerCalls>(atParent, {
    rates: (message: ParentCalls["rates"]["input"]) => parent.perform(worker, message),
    async renewRates(numbers: ParentCalls["renewRates"]["input"]) {
      await parent.renew(worker, numbers);
      return 1;
    },
  });
  const worker: Borrower = { name: "1.1", ask: (...call) => channel.ask(...call) };
  const rates = createWorkerRates(new Channel<ParentCalls>(atWorker, {}), { burstMs: BURST_MS, clock });
  return { clock, rates, stop: () => atParent.stop(), continue: () => atParent.continue() };
}

const key = subjectOf("key:1", { concurrentRequests: 2 });

it("a parent that was late keeps no concurrency unit of requests that it decided too late", async () => {
  const { rates, ...parent } = setUp();
  parent.stop();
  await expect(rates.take(demandOf([key]))).rejects.toThrow("does not answer in time");
  await expect(rates.take(demandOf([key]))).rejects.toThrow("does not answer in time");
  parent.continue();
  const admits = () =>
    rates.take(demandOf([key])).then(
      ({ admitted }) => admitted,
      () => false,
    );
  await expect.poll(admits).toBe(true);
  expect(await admits()).toBe(true);
  expect(await admits()).toBe(false);
});

it("a parent that was late keeps units whose release it did not get for a lease, and those in flight as long as they are renewed", async () => {
  const { rates, clock, ...parent } = setUp();
  const [lost, inFlight] = [demandOf([key]), demandOf([key])];
  for (const each of [lost, inFlight]) expect(await rates.take(each)).toMatchObject({ admitted: true });
  parent.stop();
  await expect(rates.take(demandOf([key]))).rejects.toThrow("does not answer in time");
  parent.continue();
  const held = [{ id: inFlight.id, subject: key.subject, accountId: key.accountId }];
  await expect.poll(() => rates.renew({ replica: "1", held }).catch(() => 0)).toBe(1);
  const admits = async () => (await rates.take(demandOf([key]))).admitted;
  expect(await admits()).toBe(false);
  for (let passedMs = 0; passedMs < 2 * LEASE_MS; passedMs += RENEW_MS) {
    clock.advance(RENEW_MS);
    await rates.renew({ replica: "1", held });
  }
  expect(await admits()).toBe(true);
  expect(await admits()).toBe(false);
});

import type { Clock } from "../core/clock.ts";
import { createMemoryRates } from "../limits/memory.ts";
import type { RateDemand, RateStore } from "../limits/rates.ts";
import { addDecision, RateDecoder, type RateMessage, type RateReply, type RateReturn } from "./rate-messages.ts";

/** The parent's state of one worker. */
interface WorkerState {
  readonly decoder: RateDecoder;
  /** Reservations not yet released, by the worker's own numbers. */
  readonly taken: Map<string, RateDemand>;
}

/**
 * Rates of all workers, counted in the parent's memory: one decision for all of them without a round trip to a disk. When a
 * worker ends, its reserved slots are freed.
 */
export class ParentRates {
  readonly #store: RateStore;
  readonly #workers = new Map<string, WorkerState>();

  constructor(options: { readonly clock: Clock; readonly burstMs: number }) {
    this.#store = createMemoryRates(options);
  }

  /** Performs the steps of a worker's message in order. */
  async perform(worker: string, message: RateMessage): Promise<RateReply> {
    const { decoder, taken } = this.#workerState(worker);
    const reply: number[] = [];
    for (const step of decoder.read(message)) {
      if ("release" in step) {
        await this.#release(taken, step.release);
        continue;
      }
      // A worker numbers its own takes; the prefix makes the ID unique among workers.
      const demand = { ...step.take, id: `${worker}/${step.take.id}` };
      const decision = await this.#store.take(demand);
      if (decision.admitted) taken.set(step.take.id, demand);
      addDecision(reply, demand, decision);
    }
    return reply;
  }

  /**
   * Renews the leases of the concurrency slots that a worker holds, by the numbers of its takes. Others expire: a release that came
   * while the parent did not answer is lost.
   */
  async renew(worker: string, numbers: readonly number[]): Promise<void> {
    const { taken } = this.#workerState(worker);
    const held = numbers.flatMap((number) => {
      const { id, subjects = [] } = taken.get(String(number)) ?? {};
      return subjects
        .filter(({ concurrentRequests }) => concurrentRequests !== undefined)
        .map(({ subject, accountId }) => ({ id: id!, subject, accountId }));
    });
    await this.#store.renew({ replica: worker, held });
  }

  /** Removes a worker that has ended and frees its concurrency slots. Requests and tokens that it has taken stay taken. */
  async leave(worker: string): Promise<void> {
    const { taken } = this.#workerState(worker);
    this.#workers.delete(worker);
    for (const [id, { tokens }] of taken) await this.#release(taken, { id, usedTokens: tokens });
  }

  async #release(taken: Map<string, RateDemand>, { id, ...used }: RateReturn): Promise<void> {
    const demand = taken.get(id);
    // A refused take has nothing to release.
    if (demand === undefined) return;
    taken.delete(id);
    await this.#store.release({ id: demand.id, subjects: demand.subjects, reservedTokens: demand.tokens, ...used });
  }

  #workerState(worker: string): WorkerState {
    let state = this.#workers.get(worker);
    if (state === undefined) {
      this.#workers.set(worker, (state = { decoder: new RateDecoder(), taken: new Map<string, RateDemand>() }));
    }
    return state;
  }
}

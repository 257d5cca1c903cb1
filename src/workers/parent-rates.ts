import type { Clock } from "../core/clock.ts";
import { createMemoryRates } from "../limits/memory.ts";
import type { RateDemand, RateStore } from "../limits/rates.ts";
import { addDecision, RateListener, type RateMessage, type RateReply, type RateReturn } from "./rate-messages.ts";

/** What the parent knows of one worker. */
interface Customer {
  readonly listener: RateListener;
  /** What it has taken and not given back, by the worker's own numbers. */
  readonly taken: Map<string, RateDemand>;
}

/**
 * The rates of all workers, in the parent's memory: decided on at one moment for all of them, and without a round trip to a
 * disk. What a worker that is gone had under way keeps no place.
 */
export class ParentRates {
  readonly #store: RateStore;
  readonly #customers = new Map<string, Customer>();

  constructor(options: { readonly clock: Clock; readonly burstMs: number }) {
    this.#store = createMemoryRates(options);
  }

  /** Does what a worker says, in its order. */
  async perform(worker: string, message: RateMessage): Promise<RateReply> {
    const { listener, taken } = this.#customer(worker);
    const reply: number[] = [];
    for (const step of listener.read(message)) {
      if ("release" in step) {
        await this.#release(taken, step.release);
        continue;
      }
      // Numbers are the worker's own; IDs are everybody's.
      const demand = { ...step.take, id: `${worker}/${step.take.id}` };
      const decision = await this.#store.take(demand);
      if (decision.admitted) taken.set(step.take.id, demand);
      addDecision(reply, demand, decision);
    }
    return reply;
  }

  /** Holds the places of a worker for another lease. */
  async renew(worker: string): Promise<void> {
    const { taken } = this.#customer(worker);
    const held = [...taken.values()].flatMap(({ id, subjects }) =>
      subjects
        .filter(({ concurrentRequests }) => concurrentRequests !== undefined)
        .map(({ subject, accountId }) => ({ id, subject, accountId })),
    );
    await this.#store.renew({ replica: worker, held });
  }

  /** The worker is gone: its places are free at once; what it has taken of rates stays taken. */
  async leave(worker: string): Promise<void> {
    const { taken } = this.#customer(worker);
    this.#customers.delete(worker);
    for (const [id, { tokens }] of taken) await this.#release(taken, { id, usedTokens: tokens });
  }

  async #release(taken: Map<string, RateDemand>, { id, ...used }: RateReturn): Promise<void> {
    const demand = taken.get(id);
    // What was never admitted has nothing to give back.
    if (demand === undefined) return;
    taken.delete(id);
    await this.#store.release({ id: demand.id, subjects: demand.subjects, reservedTokens: demand.tokens, ...used });
  }

  #customer(worker: string): Customer {
    let customer = this.#customers.get(worker);
    if (customer === undefined) {
      this.#customers.set(worker, (customer = { listener: new RateListener(), taken: new Map<string, RateDemand>() }));
    }
    return customer;
  }
}

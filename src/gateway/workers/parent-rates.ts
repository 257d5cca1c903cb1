import type { Clock } from "../../core/clock.ts";
import { createMemoryRates } from "../../limits/memory.ts";
import type { RateDecision, RateDemand, RateStore } from "../../limits/rates.ts";
import type { RateStep } from "./calls.ts";

/**
 * The rates of all workers, in the parent's memory: decided on at one moment for all of them, and without a round trip to a
 * disk. What a worker that is gone had under way keeps no place.
 */
export class ParentRates {
  readonly #store: RateStore;
  /** What each worker has taken and not given back. */
  readonly #taken = new Map<string, Map<string, RateDemand>>();

  constructor(options: { readonly clock: Clock; readonly burstMs: number }) {
    this.#store = createMemoryRates(options);
  }

  /** An answer for each step of a worker, in their order. */
  async perform(worker: string, steps: readonly RateStep[]): Promise<(RateDecision | null)[]> {
    const taken = this.#takenBy(worker);
    const answers: (RateDecision | null)[] = [];
    for (const step of steps) {
      if ("take" in step) {
        const decision = await this.#store.take(step.take);
        if (decision.admitted) taken.set(step.take.id, step.take);
        answers.push(decision);
      } else {
        await this.#release(taken, step.release);
        answers.push(null);
      }
    }
    return answers;
  }

  /** Holds the places of a worker for another lease. */
  async renew(worker: string): Promise<void> {
    const held = [...this.#takenBy(worker).values()].flatMap(({ id, subjects }) =>
      subjects
        .filter(({ concurrentRequests }) => concurrentRequests !== undefined)
        .map(({ subject }) => ({ id, subject })),
    );
    await this.#store.renew({ replica: worker, held });
  }

  /** The worker is gone: its places are free at once; what it has taken of rates stays taken. */
  async leave(worker: string): Promise<void> {
    const taken = this.#takenBy(worker);
    this.#taken.delete(worker);
    for (const { id, tokens } of taken.values()) await this.#release(taken, { id, usedTokens: tokens });
  }

  async #release(
    taken: Map<string, RateDemand>,
    { id, ...used }: { readonly id: string; readonly usedTokens: number; readonly usedRequests?: 0 | 1 },
  ): Promise<void> {
    const demand = taken.get(id);
    // What was never admitted has nothing to give back.
    if (demand === undefined) return;
    taken.delete(id);
    await this.#store.release({ id, subjects: demand.subjects, reservedTokens: demand.tokens, ...used });
  }

  #takenBy(worker: string): Map<string, RateDemand> {
    let taken = this.#taken.get(worker);
    if (taken === undefined) this.#taken.set(worker, (taken = new Map<string, RateDemand>()));
    return taken;
  }
}

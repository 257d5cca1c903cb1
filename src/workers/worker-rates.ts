import { type RateDecision, type RateStore, RateStoreError } from "../limits/rates.ts";
import { Batcher } from "../store/batcher.ts";
import type { ParentCalls } from "./calls.ts";
import type { Channel } from "./channel.ts";
import { type RateReturn, RateEncoder, type RateStep } from "./rate-messages.ts";

/** Limit for the parent's decision; after that the worker decides with its share of the limits. */
const LIMIT_MS = 1_000;

/** Rates counted by the parent for all workers, as used in a worker. Rejects with a RateStoreError. */
export function createWorkerRates(parent: Channel<ParentCalls>, { burstMs }: { readonly burstMs: number }): RateStore {
  const encoder = new RateEncoder(burstMs);
  const toError = (message: string, cause?: unknown): Error => new RateStoreError(message, { cause });
  const batcher = new Batcher<RateStep, RateDecision | null>({
    decide: async (steps) => encoder.readReply(steps, await parent.ask("rates", encoder.toMessage(steps))),
    // A message wakes another process, which costs more than its content: send all steps of one turn of the event loop at
    // once.
    gather: () => new Promise((resolve) => void setImmediate(resolve)),
    limitMs: LIMIT_MS,
    toError,
    onLate(step, decision) {
      // The caller has stopped waiting and has not begun the request.
      if ("take" in step && decision?.admitted) giveBack({ id: step.take.id, usedTokens: 0, usedRequests: 0 });
    },
  });
  const giveBack = (release: RateReturn): void => {
    batcher.ask({ release }).catch(() => undefined);
  };
  return {
    async take(demand) {
      if (demand.subjects.length === 0) return { admitted: true, levels: [] };
      // The decision is null only for a release, and this step is a take.
      return (await batcher.ask({ take: demand }))!;
    },
    async release({ id, usedTokens, usedRequests, subjects }) {
      if (subjects.length === 0) return;
      await batcher.ask({ release: { id, usedTokens, ...(usedRequests !== undefined && { usedRequests }) } });
    },
    async renew({ held }) {
      try {
        const ids = new Set(held.map(({ id }) => id));
        return await parent.ask("renewRates", encoder.numbersOf(ids), LIMIT_MS);
      } catch (cause) {
        throw toError("The parent process did not answer.", cause);
      }
    },
    async close() {
      // The channel ends with the process.
    },
  };
}

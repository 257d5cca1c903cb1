import { type RateDecision, type RateStore, RateStoreError } from "../limits/rates.ts";
import { Batcher } from "../store/batcher.ts";
import type { ParentCalls } from "./calls.ts";
import type { Channel } from "./channel.ts";
import { type RateReturn, RateSpeaker, type RateStep } from "./rate-messages.ts";

/** How long a request waits for the parent's decision: after that the worker's share of the limits will do. */
const LIMIT_MS = 1_000;

/** The rates that the parent counts for all workers, as a worker asks for them. Rejects with a RateStoreError. */
export function createWorkerRates(parent: Channel<ParentCalls>, { burstMs }: { readonly burstMs: number }): RateStore {
  const speaker = new RateSpeaker(burstMs);
  const toError = (message: string, cause?: unknown): Error => new RateStoreError(message, { cause });
  const batcher = new Batcher<RateStep, RateDecision | null>({
    decide: async (steps) => speaker.readReply(steps, await parent.ask("rates", speaker.toMessage(steps))),
    // A message wakes up another process, which costs more than what it says: all that one turn of the event loop brings
    // goes into one.
    gather: () => new Promise((resolve) => void setImmediate(resolve)),
    limitMs: LIMIT_MS,
    toError,
    onLate(step, decision) {
      // Nothing of it was ever begun.
      if ("take" in step && decision?.admitted) giveBack({ id: step.take.id, usedTokens: 0, usedRequests: 0 });
    },
  });
  const giveBack = (release: RateReturn): void => {
    batcher.ask({ release }).catch(() => undefined);
  };
  return {
    async take(demand) {
      if (demand.subjects.length === 0) return { admitted: true, levels: [] };
      // A demand is always decided on.
      return (await batcher.ask({ take: demand }))!;
    },
    async release({ id, usedTokens, usedRequests, subjects }) {
      if (subjects.length === 0) return;
      await batcher.ask({ release: { id, usedTokens, ...(usedRequests !== undefined && { usedRequests }) } });
    },
    async renew() {
      try {
        return await parent.ask("renewRates", null, LIMIT_MS);
      } catch (cause) {
        throw toError("The parent cannot be asked.", cause);
      }
    },
    async close() {
      // The channel ends with the process.
    },
  };
}

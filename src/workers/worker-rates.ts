import type { Clock } from "../core/clock.ts";
import type { Amounts } from "../limits/credits.ts";
import { type RateDecision, type RateDemand, type RateStore, RateStoreError } from "../limits/rates.ts";
import { Batcher } from "../store/batcher.ts";
import type { ParentCalls } from "./calls.ts";
import type { Channel } from "./channel.ts";
import { Credits } from "./credits.ts";
import { type CreditGrant, RateEncoder, type RateStep } from "./rate-messages.ts";

/** Limit for the parent's decision; after that the worker decides with its share of the limits. */
const LIMIT_MS = 1_000;

/** Rates counted by the parent, as used in a worker. */
export interface WorkerRates extends RateStore {
  /** Gives back the unspent credit of a subject. */
  recallCredit(subject: string): Amounts;
}

/**
 * Rates counted by the parent for all workers, as used in a worker. The worker decides by itself where it has credit. Rejects with a
 * RateStoreError.
 */
export function createWorkerRates(
  parent: Channel<ParentCalls>,
  { burstMs, clock }: { readonly burstMs: number; readonly clock: Clock },
): WorkerRates {
  const encoder = new RateEncoder(burstMs);
  const toError = (message: string, cause?: unknown): Error => new RateStoreError(message, { cause });
  /** Steps without a caller that waits. They have no time limit, so that the parent gets every unit back. */
  let unsent: RateStep[] = [];

  /** Sends the unsent steps with takes; returns the decisions. */
  const send = async (takes: readonly RateDemand[]): Promise<RateDecision[]> => {
    const steps = [...unsent, ...takes.map((take) => ({ take }))];
    unsent = [];
    const message = encoder.toMessage(steps);
    if (steps.every((step) => "release" in step)) {
      parent.tell("rates", message);
      return [];
    }
    const answers = encoder.readReply(steps, await parent.ask("rates", message));
    for (const [index, step] of steps.entries())
      if ("credit" in step) credits.receive(step.credit, answers[index] as CreditGrant);
    return answers.slice(steps.length - takes.length) as RateDecision[];
  };
  // A message wakes another process, which costs more than its content: send all steps of one turn of the event loop at once.
  const batcher = new Batcher<RateDemand, RateDecision>({
    decide: send,
    gather: () => new Promise((resolve) => void setImmediate(resolve)),
    limitMs: LIMIT_MS,
    toError,
    onLate({ id }, decision) {
      // The caller has stopped waiting and has not begun the request.
      if (decision.admitted) sendLater({ release: { id, usedTokens: 0, usedRequests: 0 } });
    },
  });
  const sendLater = (step: RateStep): void => {
    unsent.push(step);
    // Without the parent this process exits.
    if (unsent.length === 1) setImmediate(() => void (unsent.length > 0 && send([]).catch(() => undefined)));
  };
  const credits = new Credits({ clock, send: (credit) => sendLater({ credit }) });

  return {
    async take(demand) {
      if (demand.subjects.length === 0) return { admitted: true, levels: [] };
      return credits.take(demand) ?? credits.correct(await batcher.ask(demand));
    },
    async release(release) {
      const { id, usedTokens, usedRequests, subjects } = release;
      if (subjects.length === 0 || credits.release(release)) return;
      sendLater({ release: { id, usedTokens, ...(usedRequests !== undefined && { usedRequests }) } });
    },
    recallCredit: (subject) => credits.recall(subject),
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
      credits.close();
    },
  };
}

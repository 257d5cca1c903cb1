import { type Clock, waitAtMost } from "../core/clock.ts";
import { isNothing, NOTHING } from "../limits/credits.ts";
import type { MemoryRates } from "../limits/memory.ts";
import type { RateDecision, RateDemand, RateSubject } from "../limits/rates.ts";
import type { WorkerCalls } from "./calls.ts";
import type { Channel } from "./channel.ts";
import {
  addAnswer,
  type CreditGrant,
  type CreditStep,
  RateDecoder,
  type RateMessage,
  type RateReply,
  type RateReturn,
} from "./rate-messages.ts";

/** A worker, as far as its rates are concerned. */
export interface Borrower {
  readonly name: string;
  readonly ask: Channel<WorkerCalls>["ask"];
}

/** What a worker has of a subject's limits as credit, or in flight by it. */
interface Loan {
  readonly limits: RateSubject;
  /** Whether the worker may have unspent credit. */
  readonly isSpendable: boolean;
  /** Resolves when the worker has returned what was unspent. */
  recall?: Promise<void>;
}

/** The parent's state of one worker. */
interface WorkerState {
  readonly worker: Borrower;
  readonly decoder: RateDecoder;
  /** Reservations not yet released, by the worker's own numbers. */
  readonly taken: Map<string, RateDemand>;
  readonly loans: Map<string, Loan>;
}

/** Limit for a worker's return of its credit, after which a demand is refused in spite of it. */
const RECALL_MS = 50;

/**
 * Rates of all workers, counted in the parent's memory: one decision for all of them without a round trip to a disk. Workers far from
 * their limits get credit and decide by themselves. Before a demand is refused, the credit of its subjects is recalled, so no worker
 * is refused what another one does not use. When a worker ends, its reserved slots are freed.
 */
export class ParentRates {
  readonly #clock: Clock;
  readonly #store: MemoryRates;
  readonly #workers = new Map<string, WorkerState>();

  constructor({ clock, store }: { readonly clock: Clock; readonly store: MemoryRates }) {
    this.#clock = clock;
    this.#store = store;
  }

  /** Performs the steps of a worker's message in order. */
  async perform(worker: Borrower, message: RateMessage): Promise<RateReply> {
    const state = this.#stateOf(worker);
    const steps = state.decoder.read(message);
    // Memory decides within the call, so all steps are performed before the first await.
    const answers = await Promise.all(
      steps.map(async (step) => {
        if ("take" in step) return this.#take(state, step.take);
        if ("release" in step) return this.#release(state, step.release);
        return this.#lend(state, step.credit);
      }),
    );
    const reply: number[] = [];
    for (const [index, step] of steps.entries()) addAnswer(reply, step, answers[index]!);
    return reply;
  }

  /**
   * Renews the leases of the concurrency slots that a worker holds: of its credit, and of its takes by their numbers. Other takes
   * expire.
   */
  async renew(worker: Borrower, numbers: readonly number[]): Promise<void> {
    const { taken, loans } = this.#stateOf(worker);
    const held = numbers.flatMap((number) => {
      const { id, subjects = [] } = taken.get(String(number)) ?? {};
      return subjects
        .filter(({ concurrentRequests }) => concurrentRequests !== undefined)
        .map(({ subject, accountId }) => ({ id: id!, subject, accountId }));
    });
    await this.#store.renew({ replica: worker.name, held });
    for (const { limits } of loans.values())
      this.#store.lend({ holder: worker.name, limits, returned: NOTHING, kept: undefined, wished: NOTHING });
  }

  /** Removes a worker that has ended and frees its concurrency slots. Requests and tokens that it has taken or borrowed stay taken. */
  async leave({ name }: Pick<Borrower, "name">): Promise<void> {
    const state = this.#workers.get(name);
    if (state === undefined) return;
    this.#workers.delete(name);
    for (const subject of state.loans.keys()) this.#store.writeOff({ holder: name, subject });
    for (const [id, { tokens }] of state.taken) await this.#release(state, { id, usedTokens: tokens });
  }

  async #take({ worker, taken }: WorkerState, take: RateDemand): Promise<RateDecision> {
    // A worker numbers its own takes; the prefix makes the ID unique among workers.
    const demand = { ...take, id: `${worker.name}/${take.id}` };
    let decision = await this.#store.take(demand);
    const recalls = decision.admitted ? [] : this.#recall(demand.subjects);
    if (recalls.length > 0) {
      await waitAtMost(Promise.all(recalls), { clock: this.#clock, limitMs: RECALL_MS, signal: undefined });
      decision = await this.#store.take(demand);
    }
    if (decision.admitted) taken.set(take.id, demand);
    return decision;
  }

  async #release({ taken }: WorkerState, { id, ...used }: RateReturn): Promise<null> {
    const demand = taken.get(id);
    // A refused take has nothing to release.
    if (demand === undefined) return null;
    taken.delete(id);
    await this.#store.release({ id: demand.id, subjects: demand.subjects, reservedTokens: demand.tokens, ...used });
    return null;
  }

  #lend({ worker, loans }: WorkerState, { limits, returned, kept, wished }: CreditStep): CreditGrant {
    const { granted, lent, levels } = this.#store.lend({ holder: worker.name, limits, returned, kept, wished });
    if (isNothing(lent)) loans.delete(limits.subject);
    else loans.set(limits.subject, { limits, isSpendable: !isNothing(kept) || !isNothing(granted) });
    return { granted, levels };
  }

  /** Asks all workers for their unspent credit of the subjects. */
  #recall(subjects: readonly RateSubject[]): Promise<void>[] {
    return [...this.#workers.values()].flatMap((state) =>
      subjects.flatMap(({ subject }) => {
        const loan = state.loans.get(subject);
        return loan?.isSpendable === true ? (loan.recall ??= this.#recallFrom(state, loan)) : [];
      }),
    );
  }

  /** Without a time limit: what the worker returns must not be lost. */
  async #recallFrom(state: WorkerState, loan: Loan): Promise<void> {
    const { worker, loans } = state;
    const { limits } = loan;
    const returned = await worker.ask("recallCredit", limits.subject).catch(() => undefined);
    // The worker has ended.
    if (returned === undefined || this.#workers.get(worker.name) !== state) return;
    // A later statement of the worker that was sent before its return: it keeps the credit that was granted then.
    if (loans.get(limits.subject) !== loan)
      this.#store.lend({ holder: worker.name, limits, returned, kept: undefined, wished: NOTHING });
    else this.#lend(state, { limits, returned, kept: NOTHING, wished: NOTHING });
  }

  #stateOf(worker: Borrower): WorkerState {
    let state = this.#workers.get(worker.name);
    if (state === undefined) {
      state = { worker, decoder: new RateDecoder(), taken: new Map(), loans: new Map() };
      this.#workers.set(worker.name, state);
    }
    return state;
  }
}

import { randomUUID } from "node:crypto";
import { type Clock, monthOf } from "../core/clock.ts";
import type { Ledger } from "../core/ledger.ts";
import { isAttributed } from "./attributed.ts";
import type { BudgetDemand, BudgetHold, BudgetStore } from "./budgets.ts";
import { toSliceFailure } from "./refusals.ts";

/** Interval in which all slices are checked. */
const LOOK_MS = 5_000;
/** Pause before the next attempt after the budget had no room for a slice. */
const FULL_MS = 60_000;
/** Limit of budgets with a slice: more than the keys of several accounts, of which each may have 1,000. */
const MAX_SLICES = 10_000;
/** Slices that are renewed together: decisions on completions' budgets wait for their holds. */
const RENEWED_AT_ONCE = 100;

export interface BudgetSlicesOptions {
  readonly budgets: BudgetStore;
  readonly clock: Clock;
  /** Part of each budget that this process holds, from 0 to 1. */
  readonly share: number;
  /** Longest outage in which the slices may be spent. */
  readonly lastsMs: number;
  /** Whether the database is unavailable. */
  readonly isAway: () => boolean;
  /**
   * Books the entries of this process's ended completions. Resolves with whether the database has all of them in its sums. Rejects
   * when the database is unavailable.
   */
  readonly book: () => Promise<boolean>;
}

/** A budget store with slices: parts of budgets that can be spent while the database is unavailable. */
export interface SlicedBudgets extends BudgetStore {
  /** Wraps the ledger, so that its entries settle the amounts taken from slices. */
  settledBy(ledger: Ledger): Ledger;
  /** Releases the slices if the database is available; otherwise they expire. */
  close(): Promise<void>;
}

/** A part of a budget that this process holds in the database, for the time in which the database may be unavailable. */
interface Slice {
  readonly subject: string;
  limitMicroUsd: number;
  /** ID of its hold in the database. Undefined without one. */
  id: string | undefined;
  /** The month of its hold, because a budget applies to one month. */
  month: string;
  leftMicroUsd: number;
  /** By the clock's `monotonic`, as all times of a slice. */
  validUntilMs: number;
  renewAtMs: number;
  usedAtMs: number;
  /** Number of completions in flight that have taken from it, and of all takes since it was held. */
  inFlight: number;
  takes: number;
}

interface Taken {
  readonly slices: readonly Slice[];
  amountMicroUsd: number;
}

/**
 * Budgets with slices. For each budget in use the process holds a slice in the database, like the hold of a completion, so that the
 * slices and completions of all processes together stay within the budget. While the database is unavailable, completions take from
 * the slices. A slice is renewed when its completions are in the ledger, and at intervals, so that it always lasts for `lastsMs`.
 */
export function createBudgetSlices(options: BudgetSlicesOptions): SlicedBudgets {
  return new BudgetSlices(options);
}

class BudgetSlices implements SlicedBudgets {
  readonly #options: BudgetSlicesOptions;
  readonly #slices = new Map<string, Slice>();
  /** Amounts that completions in flight have taken, by completion ID. */
  readonly #taken = new Map<string, Taken>();
  #cancelLook: () => void;
  #looking: Promise<unknown> | undefined;
  #closed = false;

  constructor(options: BudgetSlicesOptions) {
    this.#options = options;
    this.#cancelLook = this.#lookLater();
  }

  async hold(demand: BudgetDemand) {
    const { budgets, isAway } = this.#options;
    // The completion has taken from slices. Its hold is not in the database, so there is nothing to extend.
    if (this.#taken.has(demand.id)) return this.#take(demand);
    if (isAway() && this.#firstWithoutRoom(demand) === undefined) return this.#take(demand);
    try {
      const decision = await budgets.hold(demand);
      // Only keys and accounts get slices: the number of end users and sessions is not bounded. Without the database their requests are
      // refused.
      if (decision.admitted) for (const hold of demand.holds) if (!isAttributed(hold.subject)) this.#note(hold);
      return decision;
    } catch (reason) {
      const isSliced = demand.holds.every(({ subject }) => this.#slices.get(subject)?.id !== undefined);
      if (demand.extends === true || !isAway() || !isSliced) throw reason;
      return this.#take(demand);
    }
  }

  async cancel(id: string): Promise<void> {
    if (this.#taken.has(id)) this.#settle(id, 0);
    // The hold may also be in the database, if the database's answer was lost.
    await this.#options.budgets.cancel(id);
  }

  reap(): Promise<number> {
    return this.#options.budgets.reap();
  }

  settledBy(ledger: Ledger): Ledger {
    return {
      begin: (entry) => ledger.begin(entry),
      admit: () => ledger.admit(),
      append: async (entry) => {
        // After `append` the entry is in the database or counts as waiting (`isBooked`), so the slice may be renewed.
        await ledger.append(entry);
        this.#settle(entry.completionId, entry.costMicroUsd);
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelLook();
    await this.#looking;
    const isBooked = await this.#options.book().catch(() => false);
    if (!isBooked || this.#taken.size > 0) return;
    const ids = [...this.#slices.values()].flatMap(({ id }) => (id === undefined ? [] : [id]));
    await Promise.all(ids.map((id) => this.#options.budgets.cancel(id).catch(() => undefined)));
  }

  /** The first budget of the demand whose slice has less left than the amount; undefined when all have enough. */
  #firstWithoutRoom({ holds, amountMicroUsd }: BudgetDemand): BudgetHold | undefined {
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    const month = monthOf(clock.now());
    return holds.find(({ subject }) => {
      const slice = this.#slices.get(subject);
      const isValid = slice !== undefined && slice.month === month && nowMs < slice.validUntilMs;
      return !isValid || slice.leftMicroUsd < amountMicroUsd;
    });
  }

  /** Takes the amount from the slices of all budgets of the demand. Throws the failure of the first one without room. */
  #take(demand: BudgetDemand): { readonly admitted: true } {
    const full = this.#firstWithoutRoom(demand);
    if (full !== undefined) throw toSliceFailure(full.subject);
    const { id, holds, amountMicroUsd } = demand;
    const slices = holds.map(({ subject }) => this.#slices.get(subject)!);
    const before = this.#taken.get(id);
    for (const slice of slices) {
      slice.leftMicroUsd -= amountMicroUsd;
      slice.usedAtMs = this.#options.clock.monotonic();
      slice.renewAtMs = -Infinity;
      slice.takes += 1;
      if (before === undefined) slice.inFlight += 1;
    }
    if (before === undefined) this.#taken.set(id, { slices, amountMicroUsd });
    else before.amountMicroUsd += amountMicroUsd;
    return { admitted: true };
  }

  #settle(id: string, costMicroUsd: number): void {
    const taken = this.#taken.get(id);
    if (taken === undefined) return;
    this.#taken.delete(id);
    for (const slice of taken.slices) {
      slice.leftMicroUsd += taken.amountMicroUsd - costMicroUsd;
      slice.inFlight -= 1;
    }
  }

  /** Notes a budget in use. It gets a slice at the next `#look`. */
  #note({ subject, limitMicroUsd }: BudgetHold): void {
    const usedAtMs = this.#options.clock.monotonic();
    const slice = this.#slices.get(subject);
    if (slice !== undefined) {
      if (slice.limitMicroUsd !== limitMicroUsd) slice.renewAtMs = -Infinity;
      Object.assign(slice, { limitMicroUsd, usedAtMs });
      return;
    }
    if (this.#slices.size >= MAX_SLICES) return;
    const none = { id: undefined, month: "", leftMicroUsd: 0, validUntilMs: -Infinity, renewAtMs: -Infinity };
    this.#slices.set(subject, { subject, limitMicroUsd, usedAtMs, inFlight: 0, takes: 0, ...none });
  }

  #lookLater(): () => void {
    return this.#options.clock.after(LOOK_MS, () => {
      this.#looking = this.#look().finally(() => {
        if (!this.#closed) this.#cancelLook = this.#lookLater();
      });
    });
  }

  async #look(): Promise<void> {
    const { isAway, book } = this.#options;
    const due = [...this.#slices.values()]
      .filter((slice) => this.#isDue(slice))
      .map((slice) => [slice, slice.takes] as const);
    if (due.length === 0 || isAway()) return;
    // A slice must stay held until the cost of its completions is in the sums.
    const isBooked = due.every(([{ takes }]) => takes === 0) || (await book().catch(() => false));
    if (!isBooked) return;
    for (let from = 0; from < due.length && !this.#closed; from += RENEWED_AT_ONCE) {
      // Not those that completions have taken from since then.
      const booked = due
        .slice(from, from + RENEWED_AT_ONCE)
        .filter(([slice, takes]) => slice.inFlight === 0 && slice.takes === takes);
      await Promise.all(booked.map(([slice]) => this.#renew(slice).catch(() => undefined)));
    }
  }

  #isUnused({ usedAtMs }: Slice): boolean {
    return this.#options.clock.monotonic() - usedAtMs > this.#options.lastsMs;
  }

  #isDue(slice: Slice): boolean {
    const { clock } = this.#options;
    if (slice.inFlight > 0) return false;
    const isOfPast = slice.id !== undefined && slice.month !== monthOf(clock.now());
    return clock.monotonic() >= slice.renewAtMs || isOfPast || this.#isUnused(slice);
  }

  /** Replaces the hold of a slice. Rejects when the database cannot be reached: the slice is then empty. */
  async #renew(slice: Slice): Promise<void> {
    const { budgets, clock, share, lastsMs } = this.#options;
    const nowMs = clock.monotonic();
    const month = monthOf(clock.now());
    slice.validUntilMs = -Infinity;
    if (slice.id !== undefined) await budgets.cancel(slice.id);
    slice.id = undefined;
    const { subject, limitMicroUsd } = slice;
    if (this.#isUnused(slice)) return void this.#slices.delete(subject);
    const amountMicroUsd = Math.floor(limitMicroUsd * share);
    slice.renewAtMs = nowMs + FULL_MS;
    if (amountMicroUsd === 0) return;
    slice.id = `slice_${randomUUID()}`;
    // Without a replica: the slice must outlive the lease of this process, which may be cut off from the database.
    const demand = { id: slice.id, holds: [{ subject, limitMicroUsd }], amountMicroUsd, replica: undefined };
    const holdMs = lastsMs * 1.25;
    const decision = await budgets.hold({ ...demand, lastsMs: holdMs + LOOK_MS });
    if (!decision.admitted) return void (slice.id = undefined);
    const validUntilMs = nowMs + holdMs;
    const renewAtMs = nowMs + lastsMs / 4;
    Object.assign(slice, { month, leftMicroUsd: amountMicroUsd, validUntilMs, renewAtMs, takes: 0 });
  }
}

/** A limit on money: whose, and how much of it in one calendar month (UTC). */
export interface BudgetHold {
  /** `key:…` or `account:…`. */
  readonly subject: string;
  readonly limitMicroUsd: number;
}

/** Money to be held for one completion until its ledger entry settles it. */
export interface BudgetDemand {
  /** The completion's ID. */
  readonly id: string;
  readonly holds: readonly BudgetHold[];
  readonly amountMicroUsd: number;
  /** How long it is held when no entry settles it: longer than the completion can last. */
  readonly lastsMs: number;
  /**
   * Adds to what is held for the completion already, and ends with it. Refused when nothing is, or only in an earlier month.
   * Default: it is the completion's first.
   */
  readonly extends?: boolean;
}

export type BudgetDecision =
  | { readonly admitted: true }
  | {
      readonly admitted: false;
      /** The first hold without room. */
      readonly subject: string;
      readonly limitMicroUsd: number;
      /** Spent and held by others in this month. */
      readonly takenMicroUsd: number;
    };

/**
 * Where budgets are kept: with the ledger, which settles what was held here. Decides at one moment for all who share it;
 * what is spent and held never comes to more than a limit. Rejects within a bounded time when it cannot be reached.
 */
export interface BudgetStore {
  hold(demand: BudgetDemand): Promise<BudgetDecision>;
  /** Gives back a hold for which there will be no ledger entry. When it rejects, the next `hold` or `reap` does it. */
  cancel(id: string): Promise<void>;
  /** Frees what was held for completions that must be over by now: their processes are gone. Answers how many. */
  reap(): Promise<number>;
}

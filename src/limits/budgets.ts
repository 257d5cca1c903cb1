import type { BudgetPeriod } from "../core/clock.ts";

/** A budget of a period. */
export interface BudgetHold {
  /** `key:…`, `account:…`, `end_user:…` or `session:…`. */
  readonly subject: string;
  readonly limitMicroUsd: number;
  /** Default: a month. */
  readonly period?: BudgetPeriod;
  /** Name of the end user or session, for lists. */
  readonly name?: string;
}

/** A hold of money for one completion until its ledger entry settles it. */
export interface BudgetDemand {
  /** The completion's ID. */
  readonly id: string;
  readonly holds: readonly BudgetHold[];
  readonly amountMicroUsd: number;
  /** Expiry of a hold without an entry: longer than the completion can last. */
  readonly lastsMs: number;
  /**
   * The process that holds it. When the process is lost, the hold becomes the cost of the completion if that had begun, otherwise it is
   * released. Undefined: the hold belongs to no process, and lasts until it expires.
   */
  readonly replica: string | undefined;
  /**
   * Whether it extends the completion's hold, in the period of that. Refused unless the completion has a hold of each budget. Default:
   * it is the first hold.
   */
  readonly extends?: boolean;
}

export type BudgetDecision =
  | { readonly admitted: true }
  | {
      readonly admitted: false;
      /** The first budget without room. */
      readonly subject: string;
      /** The limit of the hold, or the own limit of the end user or session. */
      readonly limitMicroUsd: number;
      /** Default: a month. */
      readonly period?: BudgetPeriod;
      /** Money spent in this period, and held by other completions. */
      readonly takenMicroUsd: number;
    };

/**
 * The store of budgets: the ledger's database, which settles holds. Decisions are atomic among all processes: spent and held money
 * together never exceeds a budget. Rejects within a bounded time when the database is unavailable.
 */
export interface BudgetStore {
  hold(demand: BudgetDemand): Promise<BudgetDecision>;
  /** Releases a hold that gets no ledger entry. If it rejects, the next `hold` or `reap` releases it. */
  cancel(id: string): Promise<void>;
  /** Releases expired holds, and removes expired budgets of end users and sessions. Returns the number of both. */
  reap(): Promise<number>;
}

import type { BudgetDemand } from "../../../src/limits/budgets.ts";

let made = 0;

/** A demand for 100 of the 1000 that one key may spend. */
export function demand(changes: Partial<BudgetDemand> = {}): BudgetDemand {
  return {
    id: `chatcmpl-b${process.pid}-${++made}`,
    holds: [{ subject: "key:k", limitMicroUsd: 1000 }],
    amountMicroUsd: 100,
    lastsMs: 60_000,
    replica: "a",
    ...changes,
  };
}

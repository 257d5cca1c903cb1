import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Database } from "../../src/store/database.ts";
import type { LedgerCompaction } from "../../src/store/ledger/ledger-store.ts";
import { createBudgetStore } from "../../src/store/limits/budget-store.ts";

it("holds that are cancelled together are cancelled in one transaction, later ones in the next", async () => {
  const cancelled: (readonly string[])[] = [];
  let running = 0;
  const perform = async (_name: string, ids: readonly string[]): Promise<void> => {
    expect(running++).toBe(0);
    await nextTurn();
    running -= 1;
    cancelled.push(ids);
  };
  const budgets = createBudgetStore({ kind: "postgres", perform } as unknown as Database, {} as LedgerCompaction);
  const [first, later] = ["first", "later"].map((name) =>
    Array.from({ length: 100 }, (_, index) => `${name}-${index}`),
  );
  const cancelling = first!.map((id) => budgets.cancel(id));
  await Promise.resolve();
  await Promise.all([...cancelling, ...later!.map((id) => budgets.cancel(id))]);
  expect(cancelled).toEqual([first, later]);
});

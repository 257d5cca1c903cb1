import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import type { LedgerCompaction } from "../../src/store/ledger/ledger-store.ts";
import { createBudgetStore } from "../../src/store/limits/budget-store.ts";

afterEach(() => void vi.useRealTimers());

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

const MINUTE_MS = 60_000;

it("after the database's clock was put forward, no hold counts as expired for as long as the longest one lasts", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const performed: string[] = [];
  let now = Date.UTC(2026, 10, 30);
  const database = {
    kind: "sqlite",
    nowMs: async () => now,
    perform: async (name: string) => {
      performed.push(name);
      return 0;
    },
  } as unknown as Database;
  const budgets = createBudgetStore(database, { flushed: async () => undefined } as LedgerCompaction);
  const reapAfter = async (ms: number, { stepMs = 0 } = {}): Promise<boolean> => {
    vi.advanceTimersByTime(ms);
    now += ms + stepMs;
    performed.length = 0;
    await budgets.reap();
    return performed.includes("reapHolds");
  };
  expect(await reapAfter(0)).toBe(true);
  expect(await reapAfter(MINUTE_MS, { stepMs: 1_000 })).toBe(true);
  expect(await reapAfter(MINUTE_MS, { stepMs: 20 * MINUTE_MS })).toBe(false);
  expect(await reapAfter(15 * MINUTE_MS)).toBe(false);
  expect(await reapAfter(2 * MINUTE_MS)).toBe(true);
  expect(await reapAfter(MINUTE_MS, { stepMs: -20 * MINUTE_MS })).toBe(true);
});

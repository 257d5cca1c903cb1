import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import { createLedgerCompaction, type LedgerCompaction } from "../../src/store/ledger/ledger-store.ts";
import { createBudgetStore } from "../../src/store/limits/budget-store.ts";
import { openMemoryStores } from "../support/memory-database.ts";
import { demand } from "./contracts/demands.ts";

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

it("a hold is extended in its own period, also when that is over", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2027, 1, 28, 23, 59, 59) });
  const { database, ledger } = openMemoryStores();
  const budgets = createBudgetStore(database, createLedgerCompaction(database));
  const holds = [
    { subject: "key:k", limitMicroUsd: 300 },
    { subject: "end_user:k:ann", period: "day", limitMicroUsd: 300 },
  ] as const;
  const first = demand({ holds, amountMicroUsd: 100 });
  expect(await budgets.hold(first)).toEqual({ admitted: true });
  vi.setSystemTime(Date.UTC(2027, 2, 1));
  const more = { ...first, extends: true, amountMicroUsd: 150 };
  expect(await budgets.hold(more)).toEqual({ admitted: true });
  expect(await budgets.hold(more)).toMatchObject({ subject: "key:k", takenMicroUsd: 250 });
  expect(await ledger.spending(["key:k"], "2027-02")).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 250 }]);
  expect(await ledger.spending(["end_user:k:ann"], "2027-02-28")).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 250 }]);
  expect(await budgets.hold(demand({ holds, amountMicroUsd: 300 }))).toEqual({ admitted: true });
});

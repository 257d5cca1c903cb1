import { describe, expect, it, onTestFinished } from "vitest";
import type { Ledger, NewLedgerEntry } from "../../src/core/ledger.ts";
import { createBudgetSlices } from "../../src/limits/budget-slices.ts";
import type { BudgetDemand, BudgetStore } from "../../src/limits/budgets.ts";
import { FakeClock } from "../support/fake-clock.ts";

const LIMIT = 1_000;
const LASTS_MS = 3_600_000;

/** A database with one budget, and its processes. */
function createWorld() {
  const clock = new FakeClock(Date.UTC(2026, 10, 21));
  const database = { isAway: false, spent: 0, holds: new Map<string, number>() };
  const taken = (): number => database.spent + [...database.holds.values()].reduce((sum, amount) => sum + amount, 0);
  const unlessAway = (): void => {
    if (database.isAway) throw new Error("connection refused");
  };
  const budgets: BudgetStore = {
    async hold({ id, amountMicroUsd, holds: [{ subject, limitMicroUsd } = { subject: "", limitMicroUsd: 0 }] }) {
      unlessAway();
      const takenMicroUsd = taken();
      if (takenMicroUsd + amountMicroUsd > limitMicroUsd)
        return { admitted: false, subject, limitMicroUsd, takenMicroUsd };
      database.holds.set(id, amountMicroUsd);
      return { admitted: true };
    },
    async cancel(id) {
      unlessAway();
      database.holds.delete(id);
    },
    reap: async () => 0,
  };
  /** A process whose entries wait while the database is unavailable. */
  const start = () => {
    const waiting: NewLedgerEntry[] = [];
    const isCut = { now: false };
    const isAway = (): boolean => database.isAway || isCut.now;
    const cutBudgets: BudgetStore = {
      ...budgets,
      async hold(demand) {
        if (isCut.now) throw new Error("connection refused");
        return budgets.hold(demand);
      },
    };
    const slices = createBudgetSlices({
      budgets: cutBudgets,
      clock,
      share: 0.1,
      lastsMs: LASTS_MS,
      isAway,
      async book() {
        unlessAway();
        return waiting.length === 0;
      },
    });
    onTestFinished(() => slices.close());
    const write = ({ completionId, costMicroUsd }: NewLedgerEntry): void => {
      database.holds.delete(completionId);
      database.spent += costMicroUsd;
    };
    const ledger: Ledger = slices.settledBy({
      begin: async () => undefined,
      admit: () => undefined,
      append: async (entry) => void (isAway() ? waiting.push(entry) : write(entry)),
    });
    const hold = (id: string, amountMicroUsd: number, more: Partial<BudgetDemand> = {}) =>
      slices.hold({
        id,
        holds: [{ subject: "key:a", limitMicroUsd: LIMIT }],
        amountMicroUsd,
        lastsMs: 1,
        replica: "p",
        ...more,
      });
    const end = (completionId: string, costMicroUsd: number) =>
      ledger.append({ completionId, costMicroUsd } as NewLedgerEntry);
    const catchUp = (): void => waiting.splice(0).forEach(write);
    return { slices, hold, end, catchUp, cut: (now: boolean) => void (isCut.now = now) };
  };
  const look = async (): Promise<void> => {
    await clock.pass(5_000);
    await new Promise(setImmediate);
  };
  return { clock, database, taken, start, look };
}

const usedUp: unknown = expect.objectContaining({
  code: "overloaded",
  unavailable: "database",
  message: expect.stringContaining("meanwhile is used up") as string,
});

describe("a slice of a budget", () => {
  it("is held in advance, and spent while the database is unavailable, by what completions cost", async () => {
    const { database, taken, start, look } = createWorld();
    const { hold, end } = start();
    await hold("one", 50);
    await end("one", 20);
    await look();
    expect([database.spent, taken()]).toEqual([20, 120]);
    database.isAway = true;
    await hold("two", 60);
    await expect(hold("three", 60)).rejects.toThrow(usedUp);
    await end("two", 30);
    expect(await hold("three", 60)).toEqual({ admitted: true });
    await end("three", 60);
    await expect(hold("four", 11)).rejects.toThrow(usedUp);
    expect(await hold("five", 10)).toEqual({ admitted: true });
  });

  it("is not held of an end user's budget, whose requests are refused while the database is unavailable", async () => {
    const { database, taken, start, look } = createWorld();
    const { hold, end } = start();
    const holds = [
      { subject: "key:a", limitMicroUsd: LIMIT },
      { subject: "end_user:a:u", limitMicroUsd: LIMIT, period: "day" as const },
    ];
    await hold("one", 50, { holds });
    await end("one", 20);
    await look();
    expect([database.spent, taken()]).toEqual([20, 120]);
    database.isAway = true;
    await expect(hold("two", 10, { holds })).rejects.toThrow("connection refused");
    expect(await hold("three", 10)).toEqual({ admitted: true });
  });

  it("stays held until what was spent of it is booked, and is whole again then", async () => {
    const { database, taken, start, look } = createWorld();
    const { hold, end, catchUp } = start();
    await hold("one", 50);
    await end("one", 0);
    await look();
    database.isAway = true;
    await hold("two", 80);
    await end("two", 80);
    database.isAway = false;
    await look();
    expect(taken()).toBe(100);
    catchUp();
    await look();
    expect([database.spent, taken()]).toEqual([80, 180]);
    database.isAway = true;
    expect(await hold("three", 100)).toEqual({ admitted: true });
  });

  it("keeps all processes within the budget, when one of them is cut off", async () => {
    const { database, start, look } = createWorld();
    const [cut, other] = [start(), start()];
    await cut.hold("first", 10);
    await other.hold("second", 10);
    await cut.end("first", 0);
    await other.end("second", 0);
    await look();
    cut.cut(true);
    const admitted = { cut: 0, other: 0 };
    for (const [name, process] of [
      ["cut", cut],
      ["other", other],
    ] as const) {
      for (let count = 0; count < 150; count++) {
        const id = `${name}-${count}`;
        const isAdmitted = await process.hold(id, 10).then(
          (decision) => decision.admitted,
          () => false,
        );
        if (!isAdmitted) continue;
        admitted[name] += 1;
        await process.end(id, 10);
      }
    }
    expect(admitted).toEqual({ cut: 10, other: 80 });
    cut.cut(false);
    cut.catchUp();
    await look();
    expect(database.spent).toBe(900);
    expect(await cut.hold("last", 10)).toMatchObject({ admitted: false });
  });

  it("is not spent in another month, nor when its hold may have expired", async () => {
    const { clock, database, start, look } = createWorld();
    const { hold, end } = start();
    await hold("one", 10);
    await end("one", 0);
    await look();
    database.isAway = true;
    clock.advance(LASTS_MS);
    expect(await hold("two", 10)).toEqual({ admitted: true });
    clock.advance(LASTS_MS / 4);
    await expect(hold("three", 10)).rejects.toThrow(usedUp);
    database.isAway = false;
    await end("two", 0);
    await look();
    database.isAway = true;
    expect(await hold("four", 10)).toEqual({ admitted: true });
    database.isAway = false;
    await end("four", 0);
    clock.advance(Date.UTC(2026, 10, 30, 23, 59, 45) - clock.now());
    await look();
    await hold("five", 10);
    await look();
    database.isAway = true;
    expect(await hold("six", 10)).toEqual({ admitted: true });
    clock.advance(10_000);
    await expect(hold("seven", 10)).rejects.toThrow(usedUp);
  });

  it("can be extended by a completion that has taken from it, and releases what it does not take", async () => {
    const { database, start, look } = createWorld();
    const { slices, hold, end } = start();
    await hold("one", 10);
    await end("one", 0);
    await look();
    database.isAway = true;
    await hold("two", 60);
    database.isAway = false;
    await hold("two", 40, { extends: true });
    await expect(hold("two", 1, { extends: true })).rejects.toThrow(usedUp);
    database.isAway = true;
    await slices.cancel("two").catch(() => undefined);
    expect(await hold("three", 100)).toEqual({ admitted: true });
  });

  it("is held of another account's budget, too, when an account has a thousand keys with one", async () => {
    const { clock, look } = createWorld();
    const held = new Set<string>();
    const admitted = async ({ holds: [hold], replica }: BudgetDemand) => {
      if (replica === undefined) held.add(hold!.subject);
      return { admitted: true } as const;
    };
    const budgets: BudgetStore = { hold: admitted, cancel: async () => undefined, reap: async () => 0 };
    const book = async () => true;
    const slices = createBudgetSlices({ budgets, clock, share: 0.1, lastsMs: LASTS_MS, isAway: () => false, book });
    onTestFinished(() => slices.close());
    const subjects = [...Array.from({ length: 1_000 }, (_, index) => `key:${index}`), "key:other"];
    for (const subject of subjects) {
      const holds = [{ subject, limitMicroUsd: LIMIT }];
      await slices.hold({ id: subject, holds, amountMicroUsd: 1, lastsMs: 1, replica: "p" });
    }
    await look();
    expect(held).toEqual(new Set(subjects));
  });

  it("is not there for a budget that was not in use, whose requests are refused", async () => {
    const { database, start } = createWorld();
    const { hold } = start();
    database.isAway = true;
    await expect(hold("one", 10)).rejects.toThrow("connection refused");
  });

  it("is released when it is not used for long, and when the process ends", async () => {
    const { clock, taken, start, look } = createWorld();
    const { slices, hold, end } = start();
    await hold("one", 10);
    await end("one", 0);
    await look();
    expect(taken()).toBe(100);
    clock.advance(LASTS_MS);
    await look();
    expect(taken()).toBe(0);
    await hold("two", 10);
    await end("two", 0);
    await look();
    expect(taken()).toBe(100);
    await slices.close();
    expect([taken(), clock.pending]).toEqual([0, 0]);
  });
});

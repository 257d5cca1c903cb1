import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import { createLedgerFolding, type LedgerFolding } from "../../src/store/ledger/ledger-compaction.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A folding whose transactions take so long each, and when each of them began. */
function startFolding(tookMs: number): { folding: LedgerFolding; begunMs: number[] } {
  const begunMs: number[] = [];
  const database = {
    kind: "sqlite",
    perform: () =>
      new Promise<boolean>((resolve) => {
        begunMs.push(performance.now() - originMs);
        setTimeout(() => resolve(false), tookMs);
      }),
  };
  const originMs = performance.now();
  return { folding: createLedgerFolding(database as unknown as Database), begunMs };
}

describe("entries are folded", () => {
  it("a quarter of a second after the first of few", async () => {
    const { folding, begunMs } = startFolding(5);
    folding.appended(1);
    await vi.advanceTimersByTimeAsync(200);
    folding.appended(98);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([250]);
  });

  it("at once when they are enough, and then no sooner than 40 ms after the last time", async () => {
    const { folding, begunMs } = startFolding(5);
    for (let ms = 0; ms < 200; ms++) {
      folding.appended(ms === 0 ? 100 : 4);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(begunMs).toEqual([0, 45, 90, 135, 180]);
  });

  it("without a pause when they become too many", async () => {
    const { folding, begunMs } = startFolding(5);
    folding.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    folding.appended(499);
    expect(begunMs).toEqual([0]);
    folding.appended(1);
    expect(begunMs).toEqual([0, 10]);
  });

  it("when the fold that was under way is over, however few came meanwhile", async () => {
    const { folding, begunMs } = startFolding(30);
    folding.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    folding.appended(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0, 280]);
  });

  it("by whoever closes it, and never afterwards", async () => {
    const { folding, begunMs } = startFolding(5);
    folding.appended(1);
    const closed = folding.close();
    await vi.advanceTimersByTimeAsync(1000);
    await closed;
    folding.appended(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0]);
  });
});

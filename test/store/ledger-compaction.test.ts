import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import { createLedgerCompaction, type LedgerCompaction } from "../../src/store/ledger/ledger-store.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A compaction whose transactions take so long each, and when each of them began. */
function startFolding(tookMs: number): { compaction: LedgerCompaction; begunMs: number[] } {
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
  return { compaction: createLedgerCompaction(database as unknown as Database), begunMs };
}

describe("entries are folded", () => {
  it("a quarter of a second after the first of few", async () => {
    const { compaction, begunMs } = startFolding(5);
    compaction.appended(1);
    await vi.advanceTimersByTimeAsync(200);
    compaction.appended(98);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([250]);
  });

  it("at once when they are enough, and then no sooner than 40 ms after the last time", async () => {
    const { compaction, begunMs } = startFolding(5);
    for (let ms = 0; ms < 200; ms++) {
      compaction.appended(ms === 0 ? 100 : 4);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(begunMs).toEqual([0, 45, 90, 135, 180]);
  });

  it("without a pause when they become too many", async () => {
    const { compaction, begunMs } = startFolding(5);
    compaction.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    compaction.appended(499);
    expect(begunMs).toEqual([0]);
    compaction.appended(1);
    expect(begunMs).toEqual([0, 10]);
  });

  it("when the fold that was under way is over, however few came meanwhile", async () => {
    const { compaction, begunMs } = startFolding(30);
    compaction.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    compaction.appended(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0, 280]);
  });

  it("by whoever closes it, and never afterwards", async () => {
    const { compaction, begunMs } = startFolding(5);
    compaction.appended(1);
    const closed = compaction.close();
    await vi.advanceTimersByTimeAsync(1000);
    await closed;
    compaction.appended(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0]);
  });
});

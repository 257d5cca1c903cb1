import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/store/database.ts";
import type { Compacted } from "../../src/store/ledger/ledger-journal.ts";
import { createLedgerCompaction, type LedgerCompaction } from "../../src/store/ledger/ledger-store.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A compaction whose transactions take `tookMs`, and the times at which they began. */
function startCompaction(tookMs: number): { compaction: LedgerCompaction; begunMs: number[] } {
  const begunMs: number[] = [];
  const database = {
    kind: "sqlite",
    perform: () =>
      new Promise<Compacted>((resolve) => {
        begunMs.push(performance.now() - originMs);
        setTimeout(() => resolve({ hasMore: false, dropped: 0 }), tookMs);
      }),
  };
  const originMs = performance.now();
  return { compaction: createLedgerCompaction(database as unknown as Database), begunMs };
}

describe("entries are compacted", () => {
  it("250 ms after the first of few", async () => {
    const { compaction, begunMs } = startCompaction(5);
    compaction.appended(1);
    await vi.advanceTimersByTimeAsync(200);
    compaction.appended(98);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([250]);
  });

  it("at once from 100 pending ones on, and then at the earliest 40 ms after the last compaction", async () => {
    const { compaction, begunMs } = startCompaction(5);
    for (let ms = 0; ms < 200; ms++) {
      compaction.appended(ms === 0 ? 100 : 4);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(begunMs).toEqual([0, 45, 90, 135, 180]);
  });

  it("without a pause from 500 pending ones on", async () => {
    const { compaction, begunMs } = startCompaction(5);
    compaction.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    compaction.appended(499);
    expect(begunMs).toEqual([0]);
    compaction.appended(1);
    expect(begunMs).toEqual([0, 10]);
  });

  it("250 ms after the running compaction when few came meanwhile", async () => {
    const { compaction, begunMs } = startCompaction(30);
    compaction.appended(100);
    await vi.advanceTimersByTimeAsync(10);
    compaction.appended(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0, 280]);
  });

  it("when the compaction is closed, and never afterwards", async () => {
    const { compaction, begunMs } = startCompaction(5);
    compaction.appended(1);
    const closed = compaction.close();
    await vi.advanceTimersByTimeAsync(1000);
    await closed;
    compaction.appended(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(begunMs).toEqual([0]);
  });
});

import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { ledgerOfAnswers } from "../../src/gateway/accounting.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { memoryFiles } from "../support/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";

const INTERVAL_MS = 50;

/** A ledger with an interval, and the batches that its store gets. */
function setUp() {
  const clock = new FakeClock();
  const noted: (readonly string[])[] = [];
  const inserted: (readonly string[])[] = [];
  const idsOf = (entries: readonly LedgerEntry[]): readonly string[] => entries.map(({ completionId }) => completionId);
  const database = { isAway: false };
  const kept = memoryFiles();
  const ledger = createLedger({
    clock,
    process: "p",
    intervalMs: INTERVAL_MS,
    store: {
      begin: async (note) => void (note && noted.push(idsOf(note.entries))),
      async insert(entries) {
        if (database.isAway) throw new Error("connection refused");
        inserted.push(idsOf(entries));
      },
      flush: async () => undefined,
    },
    files: kept.files,
    onTrouble: () => undefined,
  });
  const filed = () => kept.entries.map(({ completionId }) => completionId);
  return { clock, ledger, noted, inserted, database, filed };
}

const entryOf = (completionId: string): LedgerEntry => ({ completionId }) as LedgerEntry;

describe("a ledger with an interval", () => {
  it("writes all entries together when the oldest is as old as the interval", async () => {
    const { clock, ledger, inserted } = setUp();
    void ledger.append(entryOf("a"));
    await clock.pass(INTERVAL_MS - 10);
    void ledger.append(entryOf("b"));
    await clock.pass(9);
    expect([inserted, ledger.state().waiting]).toEqual([[], 2]);
    await clock.pass(1);
    await expect.poll(() => inserted).toEqual([["a", "b"]]);
    void ledger.append(entryOf("c"));
    await clock.pass(INTERVAL_MS);
    expect([inserted, clock.pending]).toEqual([[["a", "b"], ["c"]], 0]);
  });

  it("notes only completions that last longer, with all others in flight", async () => {
    const { clock, ledger, noted, inserted } = setUp();
    void ledger.begin(entryOf("short"));
    await clock.pass(20);
    void ledger.begin(entryOf("long"));
    void ledger.append(entryOf("short"));
    await clock.pass(INTERVAL_MS - 10);
    void ledger.begin(entryOf("late"));
    expect(noted).toEqual([]);
    await clock.pass(10);
    await expect.poll(() => noted).toEqual([["long", "late"]]);
    void ledger.append(entryOf("long"));
    await clock.pass(INTERVAL_MS);
    expect([inserted, noted, clock.pending]).toEqual([[["short"], ["long"]], [["long", "late"]], 0]);
  });

  it("writes its entries at once when it is closed", async () => {
    const { clock, ledger, inserted } = setUp();
    void ledger.append(entryOf("a"));
    const closing = ledger.close();
    void clock.pass(INTERVAL_MS);
    expect([await closing, inserted]).toEqual([{ filed: 0, left: [] }, [["a"]]]);
  });

  it("writes into files while the database is unavailable", async () => {
    const { clock, ledger, database, filed } = setUp();
    database.isAway = true;
    void ledger.append(entryOf("a"));
    await clock.pass(INTERVAL_MS);
    await expect.poll(filed).toEqual(["a"]);
    void ledger.append(entryOf("b"));
    await clock.pass(INTERVAL_MS - 1);
    expect(filed()).toEqual(["a"]);
    await clock.pass(1);
    await expect.poll(filed).toEqual(["a", "b"]);
  });
});

describe("completions", () => {
  const configOf = (durability: Config["ledger"]["durability"]) => ({ ledger: { durability } }) as Config;

  it("wait for the ledger, or with the durability `interval` for nothing of it", () => {
    const { ledger } = setUp();
    expect(ledgerOfAnswers(configOf("reply"), ledger)).toBe(ledger);
    const unawaited = ledgerOfAnswers(configOf("interval"), ledger);
    expect([unawaited.begin(entryOf("a")), unawaited.append(entryOf("a"))]).toEqual([undefined, undefined]);
    expect(ledger.state().waiting).toBe(1);
  });
});

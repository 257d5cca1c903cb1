import { describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { memoryFiles } from "../support/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A store whose writes the test resolves and rejects, and files that may be on a full disk. */
function setUp({ isAway = false } = {}) {
  const clock = new FakeClock();
  const disk = { isFull: false };
  const kept = memoryFiles(() => disk.isFull);
  const files = { ...kept.files };
  const batches: (readonly string[])[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const troubles: unknown[] = [];
  const ledger = createLedger({
    clock,
    process: "a",
    isAway,
    files,
    store: {
      begin: async () => undefined,
      insert(entries) {
        batches.push(entries.map(({ completionId }) => completionId));
        const answer = Promise.withResolvers<void>();
        answers.push(answer);
        return answer.promise;
      },
      flush: async () => undefined,
    },
    onTrouble: (trouble) => void troubles.push(trouble),
  });
  const append = (id: string): { ended: boolean } => {
    const seen = { ended: false };
    void ledger.append(entryOf(id)).then(() => (seen.ended = true));
    return seen;
  };
  const filed = () => kept.entries.map(({ completionId }) => completionId);
  return { clock, ledger, batches, answers, troubles, append, disk, files, filed };
}

const entryOf = (completionId: string): LedgerEntry => ({ completionId }) as LedgerEntry;
const down = new Error("connection refused");

describe("the ledger", () => {
  it("resolves when an entry is durable, and writes the entries of the meantime in one batch", async () => {
    const { clock, batches, answers, append } = setUp();
    const first = append("a");
    await clock.pass(0);
    const others = [append("b"), append("c")];
    await clock.pass(10_000);
    expect(batches).toEqual([["a"]]);
    expect(first.ended).toBe(false);
    answers[0]!.resolve();
    await expect.poll(() => [first.ended, batches]).toEqual([true, [["a"], ["b", "c"]]]);
    expect(others.map(({ ended }) => ended)).toEqual([false, false]);
    answers[1]!.resolve();
    await clock.pass(0);
    expect(others.map(({ ended }) => ended)).toEqual([true, true]);
    expect(clock.pending).toBe(0);
  });

  it("writes entries of the same event-loop turn in one batch", async () => {
    const { clock, batches, append } = setUp();
    append("a");
    append("b");
    await clock.pass(0);
    expect(batches).toEqual([["a", "b"]]);
  });

  it("writes entries into files while the database is unavailable, and into the database when it is back", async () => {
    const { clock, ledger, batches, answers, troubles, append, filed } = setUp();
    const entries = [append("a")];
    await clock.pass(0);
    entries.push(append("b"));
    answers[0]!.reject(down);
    await expect.poll(filed).toEqual(["a", "b"]);
    const later = append("c");
    await expect.poll(filed).toEqual(["a", "b", "c"]);
    expect([...entries, later].map(({ ended }) => ended)).toEqual([true, true, true]);
    expect(troubles).toEqual([{ of: "database", cause: down }]);
    expect([ledger.state(), ledger.lagMs()]).toEqual([{ waiting: 3, away: true, unwritable: false }, 0]);
    await clock.pass(1_000);
    expect(ledger.lagMs()).toBe(1_000);
    await expect.poll(() => answers).toHaveLength(2);
    answers[1]!.reject(down);
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(3);
    answers[2]!.resolve();
    await expect.poll(() => ledger.state()).toMatchObject({ waiting: 0, away: false });
    expect(batches).toEqual([["a"], ["a", "b", "c"], ["a", "b", "c"]]);
    expect([filed(), ledger.lagMs()]).toEqual([[], 0]);
    expect(troubles).toEqual([{ of: "database", cause: down }, undefined]);
    append("d");
    await expect.poll(() => batches.at(-1)).toEqual(["d"]);
  });

  it("begins with files when the database is unavailable from the start", async () => {
    const { clock, ledger, batches, answers, append, filed } = setUp({ isAway: true });
    const entry = append("a");
    await expect.poll(filed).toEqual(["a"]);
    expect([entry.ended, batches]).toEqual([true, []]);
    await clock.pass(1_000);
    await expect.poll(() => batches).toEqual([["a"]]);
    answers[0]!.resolve();
    await expect.poll(() => ledger.state()).toMatchObject({ waiting: 0, away: false });
  });

  it("keeps entries in memory when no file takes them, and refuses completions until the database or a file does", async () => {
    const { clock, ledger, batches, answers, troubles, append, disk, filed } = setUp();
    const refused = expect.objectContaining({
      code: "overloaded",
      retryAfterMs: 1_000,
      unavailable: "ledger",
    }) as Error;
    disk.isFull = true;
    const entry = append("a");
    await clock.pass(0);
    ledger.admit();
    answers[0]!.reject(down);
    await expect.poll(() => entry.ended).toBe(true);
    expect(ledger.state()).toEqual({ waiting: 1, away: true, unwritable: true });
    expect(() => ledger.admit()).toThrow(refused);
    expect(troubles).toEqual([
      { of: "database", cause: down },
      { of: "files", cause: new Error("the disk is full") },
    ]);
    disk.isFull = false;
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(2);
    answers[1]!.reject(down);
    await expect.poll(filed).toEqual(["a"]);
    expect(ledger.state()).toEqual({ waiting: 1, away: true, unwritable: false });
    ledger.admit();

    disk.isFull = true;
    append("b");
    await expect.poll(() => ledger.state().unwritable).toBe(true);
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(3);
    answers[2]!.resolve();
    while (ledger.state().waiting > 0) {
      await clock.pass(0);
      answers.at(-1)!.resolve();
    }
    expect([new Set(batches.flat()), ledger.state().unwritable]).toEqual([new Set(["a", "b"]), false]);
    ledger.admit();
  });

  it("is booked only when the entries filed during the return are in the database too", async () => {
    const { clock, ledger, batches, answers, append, filed } = setUp({ isAway: true });
    append("a");
    await expect.poll(filed).toEqual(["a"]);
    expect(ledger.isBooked()).toBe(false);
    await clock.pass(1_000);
    await expect.poll(() => batches).toEqual([["a"]]);
    append("b");
    await expect.poll(filed).toEqual(["a", "b"]);
    answers[0]!.resolve();
    await expect.poll(() => batches).toEqual([["a"], ["b"]]);
    expect([ledger.state().away, ledger.isBooked()]).toEqual([false, false]);
    answers[1]!.resolve();
    await expect.poll(() => ledger.isBooked()).toBe(true);
    expect(ledger.state().waiting).toBe(0);
  });

  it("is booked only when the entries whose callers no longer wait are in the database too", async () => {
    const { clock, ledger, batches, answers, append, disk } = setUp({ isAway: true });
    disk.isFull = true;
    const entries = Array.from({ length: 501 }, (_, index) => append(String(index)));
    await expect.poll(() => entries.every(({ ended }) => ended)).toBe(true);
    await clock.pass(1_000);
    await expect.poll(() => batches).toHaveLength(1);
    answers[0]!.resolve();
    await expect.poll(() => batches.at(-1)).toEqual(["500"]);
    expect([ledger.state().away, ledger.isBooked()]).toEqual([false, false]);
    answers[1]!.resolve();
    await expect.poll(() => ledger.isBooked()).toBe(true);
  });

  it("is not booked while a file with its entries had to be left", async () => {
    const { clock, ledger, append, files, filed } = setUp({ isAway: true });
    const recover = async (): Promise<number> => 0;
    Object.assign(files, { recover, left: 1 });
    append("a");
    await expect.poll(filed).toEqual(["a"]);
    await clock.pass(1_000);
    expect([ledger.state(), ledger.isBooked()]).toEqual([{ waiting: 1, away: false, unwritable: false }, false]);
  });

  it("ends the wait of callers when a file takes long", async () => {
    const { clock, answers, append, files } = setUp();
    const slow = Promise.withResolvers<void>();
    files.append = () => slow.promise;
    const entry = append("a");
    await clock.pass(0);
    answers[0]!.reject(down);
    await expect.poll(() => clock.pending).toBe(2);
    expect(entry.ended).toBe(false);
    await clock.pass(2_000);
    expect(entry.ended).toBe(true);
    slow.resolve();
  });

  it("writes waiting entries when it is closed, and those that cannot be written into a file", async () => {
    const { clock, ledger, batches, answers, append, filed } = setUp();
    append("a");
    await clock.pass(0);
    append("b");
    const closing = ledger.close();
    answers[0]!.resolve();
    await expect.poll(() => batches).toEqual([["a"], ["b"]]);
    answers[1]!.reject(down);
    expect(await closing).toEqual({ filed: 1, left: [] });
    expect(filed()).toEqual(["b"]);
    await clock.pass(10_000);
    expect(batches).toHaveLength(2);
  });
});

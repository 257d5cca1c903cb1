import { describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { memoryFiles } from "../support/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A ledger whose notes the test resolves and rejects. */
function setUp() {
  const clock = new FakeClock();
  const noted: (readonly string[])[] = [];
  const inserted: string[] = [];
  const removed: (readonly string[])[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const ledger = createLedger({
    clock,
    process: "p",
    store: {
      begin(note, done) {
        removed.push(done);
        if (note === undefined) return Promise.resolve();
        expect(note.process).toBe("p");
        noted.push(note.entries.map(({ completionId }) => completionId));
        const answer = Promise.withResolvers<void>();
        answers.push(answer);
        return answer.promise;
      },
      insert: async (entries) => void inserted.push(...entries.map(({ completionId }) => completionId)),
      flush: async () => undefined,
    },
    files: memoryFiles().files,
    onTrouble: () => undefined,
  });
  const begin = (id: string): { begun: boolean } => {
    const seen = { begun: false };
    void ledger.begin(entryOf(id)).then(() => (seen.begun = true));
    return seen;
  };
  return { clock, ledger, noted, inserted, removed, answers, begin };
}

const entryOf = (completionId: string): LedgerEntry => ({ completionId }) as LedgerEntry;

describe("completions that begin", () => {
  it("are noted before they go on, those of the meantime together", async () => {
    const { clock, noted, answers, begin } = setUp();
    const first = begin("a");
    await clock.pass(0);
    const others = [begin("b"), begin("c")];
    await clock.pass(10_000);
    expect([noted, first.begun]).toEqual([[["a"]], false]);
    answers[0]!.resolve();
    await expect.poll(() => [first.begun, noted]).toEqual([true, [["a"], ["b", "c"]]]);
    answers[1]!.resolve();
    await clock.pass(0);
    expect(others.map(({ begun }) => begun)).toEqual([true, true]);
    expect(clock.pending).toBe(0);
  });

  it("wait for nothing while the database is unavailable, and those still in flight are noted afterwards", async () => {
    const { clock, ledger, noted, answers, begin } = setUp();
    const first = begin("a");
    await clock.pass(0);
    answers[0]!.reject(new Error("connection refused"));
    await clock.pass(0);
    expect(first.begun).toBe(true);
    const later = begin("b");
    await clock.pass(0);
    expect(later.begun).toBe(true);
    await ledger.append(entryOf("a"));
    await clock.pass(1_000);
    expect(noted).toEqual([["a"], ["b"]]);
    answers[1]!.resolve();
    await clock.pass(10_000);
    expect(noted).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it("are written at once, also while their note is stored, which is then removed", async () => {
    const { clock, ledger, noted, inserted, removed, answers, begin } = setUp();
    begin("a");
    await clock.pass(0);
    begin("b");
    await ledger.append(entryOf("a"));
    await ledger.append(entryOf("b"));
    expect([noted, inserted]).toEqual([[["a"]], ["a", "b"]]);
    answers[0]!.resolve();
    await clock.pass(10_000);
    expect([noted, removed]).toEqual([[["a"]], [[], ["p/1"]]]);
    expect(clock.pending).toBe(0);
  });

  it("lose their note when all of it have entries, with the next note or soon", async () => {
    const { clock, ledger, removed, answers, begin } = setUp();
    for (const id of ["a", "b"]) begin(id);
    await clock.pass(0);
    answers[0]!.resolve();
    await ledger.append(entryOf("a"));
    await clock.pass(10_000);
    expect(removed).toEqual([[]]);
    await ledger.append(entryOf("b"));
    begin("c");
    await clock.pass(0);
    answers[1]!.resolve();
    expect(removed).toEqual([[], ["p/1"]]);
    await clock.pass(0);
    await ledger.append(entryOf("c"));
    await clock.pass(10_000);
    expect(removed).toEqual([[], ["p/1"], ["p/2"]]);
  });

  it("are written at once while the database is unavailable, also when a statement tries to note them again", async () => {
    const { clock, ledger, noted, inserted, answers, begin } = setUp();
    begin("a");
    await clock.pass(0);
    answers[0]!.reject(new Error("connection refused"));
    await clock.pass(1_000);
    expect(noted).toEqual([["a"], ["a"]]);
    await ledger.append(entryOf("a"));
    expect(inserted).toEqual(["a"]);
  });

  it("are among the waiting entries while their note is stored, and are written when the ledger is closed", async () => {
    const { clock, ledger, inserted, begin } = setUp();
    begin("a");
    await clock.pass(0);
    void ledger.append(entryOf("a"));
    expect(ledger.state().waiting).toBe(1);
    expect(await ledger.close()).toEqual({ filed: 0, left: [] });
    expect(inserted).toEqual(["a"]);
  });
});

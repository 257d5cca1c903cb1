import { describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { createLedger, MAX_WAITING } from "../../src/ledger/ledger.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A store whose writes the test resolves and rejects. */
function setUp() {
  const clock = new FakeClock();
  const batches: (readonly string[])[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const troubles: unknown[] = [];
  const ledger = createLedger({
    clock,
    process: "a",
    isUnwritable: (cause) => cause === full,
    store: {
      begin: async () => undefined,
      insert(entries) {
        batches.push(entries.map(({ completionId }) => completionId));
        const answer = Promise.withResolvers<void>();
        answers.push(answer);
        return answer.promise;
      },
    },
    onTrouble: (trouble) => void troubles.push(trouble),
  });
  const append = (id: string): { ended: boolean } => {
    const seen = { ended: false };
    void ledger.append(entryOf(id)).then(() => (seen.ended = true));
    return seen;
  };
  return { clock, ledger, batches, answers, troubles, append };
}

const entryOf = (completionId: string): LedgerEntry => ({ completionId }) as LedgerEntry;
const down = new Error("connection refused");
const full = new Error("database or disk is full");

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

  it("resolves appends at once while the database is unavailable, retries them, and reports the outage and its end once", async () => {
    const { clock, ledger, batches, answers, troubles, append } = setUp();
    const entries = [append("a")];
    await clock.pass(0);
    entries.push(append("b"));
    answers[0]!.reject(down);
    await clock.pass(0);
    expect(entries.map(({ ended }) => ended)).toEqual([true, true]);
    expect(troubles).toEqual([{ cause: down, waiting: 2 }]);
    const later = append("c");
    await clock.pass(0);
    expect([later.ended, ledger.state()]).toEqual([true, { waiting: 3, away: true, unwritable: false }]);
    expect(ledger.lagMs()).toBe(0);
    await clock.pass(1_000);
    expect(ledger.lagMs()).toBe(1_000);
    await expect.poll(() => answers).toHaveLength(2);
    answers[1]!.reject(down);
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(3);
    answers[2]!.resolve();
    await clock.pass(0);
    expect(batches).toEqual([["a"], ["a", "b", "c"], ["a", "b", "c"]]);
    expect([ledger.state(), ledger.lagMs()]).toEqual([{ waiting: 0, away: false, unwritable: false }, 0]);
    expect(troubles).toEqual([{ cause: down, waiting: 2 }, undefined]);
  });

  it("refuses new completions beyond MAX_WAITING unwritten entries", async () => {
    const { clock, ledger, answers, append } = setUp();
    append("first");
    await clock.pass(0);
    answers[0]!.reject(down);
    await clock.pass(0);
    for (let count = 1; count < MAX_WAITING; count++) {
      ledger.admit();
      append(String(count));
    }
    expect(() => ledger.admit()).toThrow(expect.objectContaining({ code: "overloaded", retryAfterMs: 1_000 }));
  });

  it("refuses new completions at once while the disk takes no writes, and reports that", async () => {
    const { clock, ledger, answers, troubles, append } = setUp();
    append("a");
    await clock.pass(0);
    answers[0]!.reject(down);
    await clock.pass(0);
    ledger.admit();
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(2);
    answers[1]!.reject(full);
    await clock.pass(0);
    expect(ledger.state()).toEqual({ waiting: 1, away: true, unwritable: true });
    expect(troubles).toEqual([
      { cause: down, waiting: 1 },
      { cause: full, waiting: 1 },
    ]);
    expect(() => ledger.admit()).toThrow(expect.objectContaining({ code: "overloaded", unavailable: "ledger" }));
    await clock.pass(1_000);
    await expect.poll(() => answers).toHaveLength(3);
    answers[2]!.resolve();
    await clock.pass(0);
    expect(ledger.state()).toEqual({ waiting: 0, away: false, unwritable: false });
    ledger.admit();
  });

  it("writes waiting entries when it is closed, and returns those that cannot be written", async () => {
    const { clock, ledger, batches, answers, append } = setUp();
    append("a");
    await clock.pass(0);
    append("b");
    const closing = ledger.close();
    answers[0]!.resolve();
    await expect.poll(() => batches).toEqual([["a"], ["b"]]);
    answers[1]!.reject(down);
    expect(await closing).toEqual([entryOf("b")]);
    await clock.pass(10_000);
    expect(batches).toHaveLength(2);
  });
});

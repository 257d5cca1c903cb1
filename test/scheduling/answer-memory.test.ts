import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { type AnswerHold, AnswerMemory } from "../../src/scheduling/answer-memory.ts";

const MIB = 1024 * 1024;
const never = new AbortController().signal;

let memory: AnswerMemory;
beforeEach(() => {
  memory = new AnswerMemory({ key: 10 * MIB, account: 20 * MIB, process: 40 * MIB });
});

/** An answer of a key, named like `a1` after its account. `mib`: its size, if given. */
function open(key: string, mib = 0): AnswerHold {
  const hold = memory.open({ keyFamilyId: key, accountId: key[0]! });
  if (hold.take(mib * MIB, never) !== undefined) throw new Error(`There is no room for ${mib} MiB of ${key}.`);
  return hold;
}

/** Asks for a total of some MiB; resolves when there is memory for them. */
function ask(hold: AnswerHold, mib: number, signal = never): { isThere: boolean; readonly end: Promise<void> } {
  const asked = { isThere: false, end: Promise.resolve() };
  const waiting = hold.take(mib * MIB, signal);
  if (waiting === undefined) asked.isThere = true;
  else asked.end = waiting.then(() => void (asked.isThere = true));
  return asked;
}

function end(hold: AnswerHold): void {
  hold.read();
  hold.sent();
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the memory of large answers", () => {
  it("lets an answer of a key wait while another one exceeds the limit", async () => {
    const first = open("a1", 11);
    const second = ask(open("a1"), 4);
    expect([second.isThere, memory.waiting]).toEqual([false, 1]);
    end(first);
    await second.end;
    expect([memory.bytes, memory.waiting]).toEqual([4 * MIB, 0]);
  });

  it("takes one answer that is larger than the limits", () => {
    open("a1", 60);
    expect(ask(open("b1"), 10).isThere).toBe(true);
  });

  it("lets other keys and accounts read on beside the large answer of one", () => {
    open("a1", 60);
    expect(ask(open("a1"), 1).isThere).toBe(false);
    expect(ask(open("a2"), 10).isThere).toBe(true);
    expect(ask(open("b1"), 10).isThere).toBe(true);
    expect(ask(open("c1"), 10).isThere).toBe(true);
  });

  it("gives what becomes free to the keys in turn", async () => {
    memory = new AnswerMemory({ key: 40 * MIB, account: 40 * MIB, process: 20 * MIB });
    const large = ["a1", "b1"].map((key) => open(key, 60));
    const order: string[] = [];
    for (const name of ["d1 first", "d1 second", "e1 first"])
      void open(name.slice(0, 2))
        .take(20 * MIB, never)
        ?.then(() => order.push(name));
    for (const hold of large) {
      end(hold);
      await turn();
    }
    expect(order).toEqual(["d1 first", "e1 first", "d1 second"]);
  });

  it("lets the last one that exceeded a limit go on, whatever waits before it", async () => {
    const [large, small] = [open("a1", 8), open("a1", 2)];
    const waiting = ask(small, 4);
    expect(ask(large, 20).isThere).toBe(true);
    expect(ask(large, 64).isThere).toBe(true);
    end(large);
    await waiting.end;
    expect(memory.bytes).toBe(4 * MIB);
  });

  it("waits no longer when the signal aborts", async () => {
    const first = open("a1", 11);
    const limit = new AbortController();
    const second = ask(open("a1"), 4, limit.signal);
    limit.abort(new Error("too late"));
    await expect(second.end).rejects.toThrow("too late");
    expect(memory.waiting).toBe(0);
    end(first);
    expect(memory.bytes).toBe(0);
    expect(() => ask(open("a1"), 4, limit.signal)).not.toThrow();
  });

  it.each<[string, (hold: AnswerHold) => void]>([
    ["has ended", end],
    ["is dropped", (hold) => hold.drop()],
    ["was passed on", (hold) => hold.passed()],
  ])("waits no longer for an answer that %s", async (_, leave) => {
    const first = open("a1", 11);
    const hold = open("a1", 0);
    const waiting = ask(hold, 4);
    const next = ask(open("a1"), 2);
    leave(hold);
    await waiting.end;
    expect([hold.bytes, memory.waiting]).toEqual([0, 1]);
    end(first);
    await next.end;
    expect([memory.bytes, memory.waiting]).toEqual([2 * MIB, 0]);
  });

  it("waits no longer for an answer that is read, and counts what it has until it is sent", async () => {
    open("a1", 11);
    const hold = open("a2", 5);
    open("a2", 11);
    const waiting = ask(hold, 8);
    expect(waiting.isThere).toBe(false);
    hold.read();
    await waiting.end;
    expect([hold.bytes, memory.waiting]).toEqual([5 * MIB, 0]);
    hold.sent();
    expect([hold.bytes, memory.bytes]).toEqual([0, 22 * MIB]);
  });

  it("frees what is kept of an answer that is dropped", () => {
    const hold = open("a1");
    hold.keep();
    void hold.take(11 * MIB, never);
    hold.passed();
    expect(ask(open("a1"), 1).isThere).toBe(false);
    hold.drop();
    expect(memory.waiting).toBe(0);
    expect(memory.bytes).toBe(MIB);
  });

  it("frees what was passed on, unless it is kept until the answer is sent", () => {
    const [passed, kept] = [open("a1"), open("b1")];
    kept.keep();
    for (const hold of [passed, kept]) {
      void hold.take(3 * MIB, never);
      hold.passed();
      void hold.take(2 * MIB, never);
    }
    expect([passed.bytes, kept.bytes]).toEqual([2 * MIB, 5 * MIB]);
    kept.read();
    expect(kept.bytes).toBe(5 * MIB);
    kept.sent();
    expect(kept.bytes).toBe(0);
  });

  it("counts what is read for a caller that is gone", () => {
    const hold = open("a1", 3);
    hold.sent();
    expect(memory.bytes).toBe(3 * MIB);
    hold.read();
    expect(memory.bytes).toBe(0);
  });

  it("has no deadlock, whatever the sizes and the order in which answers are read", async () => {
    const answer = fc.record({
      key: fc.constantFrom("a1", "a2", "b1", "b2", "c1", "d1", "e1"),
      parts: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 3 }),
      keeps: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(answer, { minLength: 2, maxLength: 25 }),
        fc.infiniteStream(fc.nat(1000)),
        async (answers, dice) => {
          memory = new AnswerMemory({ key: 10 * MIB, account: 20 * MIB, process: 40 * MIB });
          const reading = answers.map(({ key, parts, keeps }) => {
            const hold = open(key);
            if (keeps) hold.keep();
            return { hold, parts, read: 0, part: 0, isWaiting: false };
          });
          while (reading.length > 0) {
            const able = reading.filter(({ isWaiting }) => !isWaiting);
            expect(able.length, `${reading.length} answers wait for each other`).toBeGreaterThan(0);
            const one = able[dice.next().value % able.length]!;
            one.read += 1;
            const waiting = one.hold.take(one.read * MIB, never);
            if (waiting !== undefined) {
              one.isWaiting = true;
              void waiting.then(() => (one.isWaiting = false));
            } else if (one.read >= one.parts[one.part]!) {
              one.hold.passed();
              one.read = 0;
              one.part += 1;
              if (one.part === one.parts.length) {
                end(one.hold);
                reading.splice(reading.indexOf(one), 1);
              }
            }
            await turn();
          }
          expect([memory.bytes, memory.waiting]).toEqual([0, 0]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { type AnswerHold, PATIENCE_MS } from "../../src/scheduling/answer-hold.ts";
import { AnswerMemory } from "../../src/scheduling/answer-memory.ts";
import { FakeClock } from "../support/fake-clock.ts";

const MIB = 1024 * 1024;
const never = new AbortController().signal;

const LIMITS = { key: 10 * MIB, account: 20 * MIB, provider: 40 * MIB, process: 40 * MIB };

let clock: FakeClock;
let memory: AnswerMemory;
/** The ends of answers: `a1 abandoned` by the provider's fault, `a1 left` by the caller's. */
let ends: string[];
beforeEach(() => {
  clock = new FakeClock();
  memory = new AnswerMemory(LIMITS, clock);
  ends = [];
});

const provider = { name: "first" };
const otherProvider = { name: "other" };

/** An answer of a key, named like `a1` after its account. `mib`: its size, if given. */
function open(key: string, mib = 0, from: object = provider): AnswerHold {
  const hold = memory.open({
    keyFamilyId: key,
    accountId: key[0]!,
    provider: from,
    abandon: () => void ends.push(`${key} abandoned`),
    leave: () => void ends.push(`${key} left`),
  });
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
    expect([memory.bytes, memory.waiting]).toEqual([10 * MIB, 0]);
  });

  it("gives as much as the limit of a key in a turn, and frees what was not needed", async () => {
    const first = open("a1", 11);
    const hold = open("a1");
    const second = ask(hold, 4);
    end(first);
    await second.end;
    expect(ask(hold, 9).isThere).toBe(true);
    expect(hold.bytes).toBe(10 * MIB);
    hold.read();
    expect([hold.bytes, memory.bytes]).toEqual([9 * MIB, 9 * MIB]);
  });

  it("takes one answer that is larger than the limits", () => {
    expect(open("a1", 60).bytes).toBe(60 * MIB);
  });

  it.each([
    ["a key", "a1", provider],
    ["an account", "a2", provider],
    ["a provider", "b1", provider],
    ["the process", "b1", otherProvider],
  ])("counts all bytes for %s: an answer waits while another one is beyond its limit", (_, key, from) => {
    memory = new AnswerMemory({ ...LIMITS, provider: 30 * MIB }, clock);
    open("a1", 60);
    expect(ask(open(key, 0, from), 1).isThere).toBe(false);
  });

  it("holds no more than the limit of the process and one answer, whichever keys ask", () => {
    memory = new AnswerMemory(LIMITS, clock);
    for (const account of ["a", "b", "c", "d"])
      for (const key of [1, 2, 3, 4]) {
        const hold = open(`${account}${key}`, 0, { account });
        for (let mib = 1; mib <= 60 && hold.waiting === undefined; mib += 1) void ask(hold, mib);
      }
    expect(memory.bytes).toBeLessThanOrEqual(100 * MIB);
  });

  it("leaves half of the memory to other providers", () => {
    memory = new AnswerMemory({ ...LIMITS, provider: 20 * MIB }, clock);
    open("a1", 10);
    open("b1", 10);
    expect(ask(open("c1"), 10).isThere).toBe(true);
    expect(ask(open("d1"), 10).isThere).toBe(false);
    expect(ask(open("d1", 0, otherProvider), 10).isThere).toBe(true);
  });

  it("gives what becomes free to providers in turn, of each its accounts, and of each of those its keys", async () => {
    memory = new AnswerMemory({ key: 40 * MIB, account: 40 * MIB, provider: 40 * MIB, process: 20 * MIB }, clock);
    const large = open("x1", 60);
    const order: string[] = [];
    const asked: [string, object][] = [
      ["d1 first", provider],
      ["d1 second", provider],
      ["d2", provider],
      ["e1", provider],
      ["d3", otherProvider],
    ];
    const holds = asked.map(([name, from]) => {
      const hold = open(name.slice(0, 2), 0, from);
      void hold.take(20 * MIB, never)?.then(() => order.push(name));
      return hold;
    });
    end(large);
    for (let round = 0; round < asked.length; round++) {
      await turn();
      const [last] = order.slice(-1);
      end(holds[asked.findIndex(([name]) => name === last)]!);
    }
    expect(order).toEqual(["d3", "e1", "d1 first", "d2", "d1 second"]);
  });

  it("continues the last one that exceeded a limit, whatever waits before it", async () => {
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
    expect([memory.bytes, memory.waiting]).toEqual([10 * MIB, 0]);
  });

  it("waits no longer for an answer that is read, and counts what it has until it is sent", async () => {
    const hold = open("a2", 5);
    open("a2", 11);
    open("a1", 3);
    const waiting = ask(hold, 8);
    expect(waiting.isThere).toBe(false);
    hold.read();
    await waiting.end;
    expect([hold.bytes, memory.waiting]).toEqual([5 * MIB, 0]);
    hold.sent();
    expect([hold.bytes, memory.bytes]).toEqual([0, 14 * MIB]);
  });

  it("frees what is kept of an answer that is dropped", () => {
    const hold = open("a1");
    hold.keep();
    void hold.take(11 * MIB, never);
    hold.passed();
    expect(ask(open("a1"), 1).isThere).toBe(false);
    hold.drop();
    expect(memory.waiting).toBe(0);
    expect(memory.bytes).toBe(10 * MIB);
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

  it("counts what is read for a caller that has left", () => {
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
      from: fc.constantFrom(provider, otherProvider),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(answer, { minLength: 2, maxLength: 25 }),
        fc.infiniteStream(fc.nat(1000)),
        async (answers, dice) => {
          memory = new AnswerMemory({ ...LIMITS, provider: 20 * MIB }, clock);
          const reading = answers.map(({ key, parts, keeps, from }) => {
            const hold = open(key, 0, from);
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

describe("a large answer that is late", () => {
  /** Reads or sends on for some seconds, at so many MiB in each. */
  function move(hold: AnswerHold, seconds: number, mib: number): void {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000);
      hold.moved(mib * MIB);
    }
  }

  it.each<[string, string, (hold: AnswerHold) => void]>([
    ["its provider stalls", "abandoned", () => undefined],
    ["its caller does not read", "left", (hold) => hold.read()],
    ["its caller has no room for a part", "left", (hold) => hold.emitting()],
  ])("ends when %s and another key waits", async (_, ending, stall) => {
    const hold = open("a1", 60);
    stall(hold);
    const waiting = ask(open("b1"), 8);
    clock.advance(PATIENCE_MS - 1_000);
    expect([ends, waiting.isThere]).toEqual([[], false]);
    clock.advance(1_000);
    await waiting.end;
    expect([ends, memory.ended, memory.bytes, memory.waiting]).toEqual([[`a1 ${ending}`], 1, 10 * MIB, 0]);
  });

  it("ends at once when it was late before another key came", () => {
    open("a1", 60);
    clock.advance(60_000);
    expect(ends).toEqual([]);
    void ask(open("b1"), 8);
    expect(ends).toEqual(["a1 abandoned"]);
  });

  it("continues while only answers of its key and provider wait", () => {
    open("a1", 60);
    void ask(open("a1"), 8);
    clock.advance(60_000);
    expect([ends, memory.waiting]).toEqual([[], 1]);
    void ask(open("a1", 0, otherProvider), 8);
    expect(ends).toEqual(["a1 abandoned"]);
  });

  it("continues at a tenth of its bytes in a second, and ends below", () => {
    const hold = open("a1", 41);
    hold.read();
    void ask(open("b1"), 8);
    move(hold, 60, 4.1);
    expect(ends).toEqual([]);
    move(hold, 15, 1);
    expect(ends).toEqual(["a1 left"]);
  });

  it("is late no more when it goes on after a long silence", () => {
    const hold = open("a1", 60);
    clock.advance(600_000);
    hold.moved(12 * MIB);
    void ask(open("b1"), 8);
    clock.advance(1_500);
    expect(ends).toEqual([]);
    clock.advance(500);
    expect(ends).toEqual(["a1 abandoned"]);
  });

  it("has all its time again for its caller", () => {
    const hold = open("a1", 60);
    clock.advance(PATIENCE_MS - 1_000);
    hold.read();
    void ask(open("b1"), 8);
    clock.advance(PATIENCE_MS - 1_000);
    expect(ends).toEqual([]);
  });

  it("is not late while it waits for its turn", () => {
    const hold = open("a1", 60);
    hold.pause();
    void ask(open("b1"), 8);
    clock.advance(60_000);
    expect(ends).toEqual([]);
    hold.resume();
    clock.advance(PATIENCE_MS);
    expect(ends).toEqual(["a1 abandoned"]);
  });

  it("is not late while it waits for memory", () => {
    const [first, second] = [open("a1", 8), open("a2", 21)];
    void ask(first, 30);
    expect(first.waiting).toBeDefined();
    void ask(open("a3"), 8);
    second.pause();
    clock.advance(60_000);
    expect(ends).toEqual([]);
  });

  it("is not ended when it is not in the way", () => {
    memory = new AnswerMemory({ ...LIMITS, process: 400 * MIB }, clock);
    open("a1", 5);
    open("b1", 60);
    void ask(open("b2"), 1);
    clock.advance(60_000);
    expect(ends).toEqual(["b1 abandoned"]);
  });

  it("of the account with most bytes ends first", () => {
    open("a1", 15);
    open("b1", 10);
    open("b2", 10);
    open("c1", 6);
    void ask(open("d1"), 1);
    clock.advance(PATIENCE_MS);
    expect(ends).toEqual(["b1 abandoned"]);
  });

  it("leaves no timer when nothing is in memory", () => {
    const hold = open("a1", 5);
    expect(clock.pending).toBe(1);
    end(hold);
    expect(clock.pending).toBe(0);
  });
});

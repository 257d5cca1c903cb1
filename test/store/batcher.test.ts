import { describe, expect, it } from "vitest";
import { Batcher } from "../../src/store/batcher.ts";

/** A batcher whose batches are decided when the test says so. */
function createControlled(limitMs = 60_000, onLate?: (demand: number, answer: string) => void) {
  const batches: { readonly demands: readonly number[]; decide(): void; fail(error: Error): void }[] = [];
  const batcher = new Batcher<number, string>({
    decide: (demands) =>
      new Promise((resolve, reject) => {
        batches.push({ demands, decide: () => resolve(demands.map((demand) => `n${demand}`)), fail: reject });
      }),
    limitMs,
    onLate,
    toError: (message, cause) => new Error(message, { cause }),
  });
  return { batcher, batches };
}

/** Asks until it is not refused at once; the answer is on its way. */
async function untilAsked(batcher: Batcher<number, string>, demand: number): Promise<{ answer: Promise<string> }> {
  for (;;) {
    const answer = batcher.ask(demand);
    const refused = await Promise.race([
      answer.then(
        () => false,
        () => true,
      ),
      new Promise<false>((resolve) => setImmediate(resolve, false)),
    ]);
    if (!refused) return { answer };
  }
}

describe("a batcher", () => {
  it("decides together what came while it was deciding", async () => {
    const { batcher, batches } = createControlled();
    const first = [1, 2].map((demand) => batcher.ask(demand));
    await expect.poll(() => batches.length).toBe(1);
    const second = [3, 4, 5].map((demand) => batcher.ask(demand));
    batches[0]!.decide();
    expect(await Promise.all(first)).toEqual(["n1", "n2"]);
    await expect.poll(() => batches.length).toBe(2);
    batches[1]!.decide();
    expect(await Promise.all(second)).toEqual(["n3", "n4", "n5"]);
    expect(batches.map(({ demands }) => demands)).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it("rejects all of a batch that fails, and goes on with the next", async () => {
    const { batcher, batches } = createControlled();
    const failing = Promise.allSettled([batcher.ask(1), batcher.ask(2)]);
    await expect.poll(() => batches.length).toBe(1);
    const next = batcher.ask(3);
    const cause = new Error("no database");
    batches[0]!.fail(cause);
    expect(await failing).toEqual([
      { status: "rejected", reason: expect.objectContaining({ cause }) as Error },
      { status: "rejected", reason: expect.objectContaining({ cause }) as Error },
    ]);
    await expect.poll(() => batches.length).toBe(2);
    batches[1]!.decide();
    expect(await next).toBe("n3");
  });

  it("keeps nobody waiting for longer than its limit, and leaves out who has gone", async () => {
    const { batcher, batches } = createControlled(50);
    const first = batcher.ask(1);
    await expect.poll(() => batches.length).toBe(1);
    const second = batcher.ask(2);
    await expect(first).rejects.toThrow("does not answer in time");
    await expect(second).rejects.toThrow("does not answer in time");
    batches[0]!.decide();
    const third = await untilAsked(batcher, 3);
    expect(batches).toHaveLength(2);
    expect(batches[1]!.demands).toEqual([3]);
    batches[1]!.decide();
    expect(await third.answer).toBe("n3");
  });

  it("refuses at once behind a transaction that takes too long, until that has ended", async () => {
    const { batcher, batches } = createControlled(100);
    const first = batcher.ask(1);
    await expect.poll(() => batches.length).toBe(1);
    await expect(first).rejects.toThrow("does not answer in time");
    // Each of these would wait for its limit: they are done with before one limit is over.
    const startedAtMs = performance.now();
    for (let count = 0; count < 100; count++) await expect(batcher.ask(2)).rejects.toThrow("does not answer in time");
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    batches[0]!.fail(new Error("gone"));
    const next = await untilAsked(batcher, 3);
    batches[1]!.decide();
    expect(await next.answer).toBe("n3");
  });

  it("tells of an answer for which nobody waits any more", async () => {
    const late: [number, string][] = [];
    const { batcher, batches } = createControlled(50, (...answered) => void late.push(answered));
    const asked = batcher.ask(1);
    await expect(asked).rejects.toThrow("does not answer in time");
    batches[0]!.decide();
    await expect.poll(() => late).toEqual([[1, "n1"]]);
    const next = await untilAsked(batcher, 2);
    batches[1]!.decide();
    expect(await next.answer).toBe("n2");
    expect(late).toHaveLength(1);
  });

  it("takes an answer that has come while this process was busy", async () => {
    const { batcher, batches } = createControlled(20);
    const asked = batcher.ask(1);
    await expect.poll(() => batches.length, { interval: 1 }).toBe(1);
    // What is read from a socket comes after the timers that are due.
    setTimeout(() => batches[0]!.decide(), 30);
    const untilMs = performance.now() + 50;
    while (performance.now() < untilMs);
    expect(await asked).toBe("n1");
  });

  it("refuses more than can wait", async () => {
    const { batcher, batches } = createControlled();
    const waiting = Promise.allSettled(Array.from({ length: 10_000 }, (_, index) => batcher.ask(index)));
    await expect(batcher.ask(-1)).rejects.toThrow("Too many");
    for (let decided = 0; decided < 20; decided++) {
      await expect.poll(() => batches.length).toBeGreaterThan(decided);
      batches[decided]!.decide();
    }
    expect((await waiting).every(({ status }) => status === "fulfilled")).toBe(true);
  });
});

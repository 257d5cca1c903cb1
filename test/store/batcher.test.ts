import { describe, expect, it } from "vitest";
import { Batcher } from "../../src/store/batcher.ts";

/** A batcher whose batches the test decides. */
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

/** Asks until the demand is not refused at once; returns the pending answer. */
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
  it("decides demands together that arrive during a transaction", async () => {
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

  it("rejects a demand alone whose answer is an error", async () => {
    const reason = new Error("locked");
    const batcher = new Batcher<number, string>({
      decide: async (demands) => demands.map((demand) => (demand === 2 ? reason : `n${demand}`)),
      limitMs: 60_000,
      toError: (message) => new Error(message),
    });
    expect(await Promise.allSettled([1, 2, 3].map((demand) => batcher.ask(demand)))).toEqual([
      { status: "fulfilled", value: "n1" },
      { status: "rejected", reason },
      { status: "fulfilled", value: "n3" },
    ]);
  });

  it("rejects all demands of a failed batch, and continues with the next", async () => {
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

  it("rejects demands after the limit, and omits them from the next batch", async () => {
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

  it("rejects at once while a transaction is overdue", async () => {
    const { batcher, batches } = createControlled(100);
    const first = batcher.ask(1);
    await expect.poll(() => batches.length).toBe(1);
    await expect(first).rejects.toThrow("does not answer in time");
    // Waiting for its limit (100 ms), each would take 10 s in total.
    const startedAtMs = performance.now();
    for (let count = 0; count < 100; count++) await expect(batcher.ask(2)).rejects.toThrow("does not answer in time");
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    batches[0]!.fail(new Error("gone"));
    const next = await untilAsked(batcher, 3);
    batches[1]!.decide();
    expect(await next.answer).toBe("n3");
  });

  it("passes a late answer to onLate", async () => {
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

  it("takes the demand by which onLate undoes a late answer", async () => {
    const undone: Promise<string>[] = [];
    const { batcher, batches } = createControlled(50, () => void undone.push(batcher.ask(-1)));
    await expect(batcher.ask(1)).rejects.toThrow("does not answer in time");
    batches[0]!.decide();
    await expect.poll(() => batches.length).toBe(2);
    batches[1]!.decide();
    expect(await undone[0]).toBe("n-1");
  });

  it("accepts an answer that arrived while the process was busy", async () => {
    const { batcher, batches } = createControlled(20);
    const asked = batcher.ask(1);
    await expect.poll(() => batches.length, { interval: 1 }).toBe(1);
    // I/O events are handled after due timers.
    setTimeout(() => batches[0]!.decide(), 30);
    const untilMs = performance.now() + 50;
    while (performance.now() < untilMs);
    expect(await asked).toBe("n1");
  });

  it("rejects demands beyond MAX_WAITING", async () => {
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

import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { StreamTurns } from "../../src/providers/stream-turns.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Parts of answers, each of which takes so long by a clock of the test's own. */
class Parts {
  nowMs = 100;
  readonly turns = new StreamTurns(() => this.nowMs);
  readonly done: string[] = [];

  arrive(name: string, tookMs: number, key = "key"): void {
    this.turns.take(key, () => {
      this.done.push(name);
      // As in a stream's reader, the work is not done within the call.
      queueMicrotask(() => queueMicrotask(() => (this.nowMs += tookMs)));
    });
  }

  /** What the next turn of the event loop does. */
  async turn(): Promise<string[]> {
    await nextTurn();
    return this.done.splice(0);
  }
}

describe("parts of answers", () => {
  it("are looked at as they arrive as long as there is time", async () => {
    const parts = new Parts();
    parts.arrive("a", 2);
    await Promise.resolve();
    parts.arrive("b", 2);
    expect(parts.done).toEqual(["a", "b"]);
    expect(parts.turns.takeLongestWaitMs()).toBe(0);
  });

  it("of a key wait for later turns of the event loop, in order, when there is none left", async () => {
    const parts = new Parts();
    parts.arrive("a", 6);
    await nextTurn();
    parts.arrive("b", 6);
    await new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => resolve(undefined))));
    for (const name of ["c", "d", "e", "f"]) parts.arrive(name, 3);
    expect(parts.done.splice(0)).toEqual(["a", "b"]);
    expect(await parts.turn()).toEqual(["c", "d"]);
    // Who comes later does not come first, although there would be time.
    parts.arrive("g", 0);
    expect(parts.done).toEqual([]);
    expect(await parts.turn()).toEqual(["e", "f"]);
    expect(await parts.turn()).toEqual(["g"]);
  });

  it("of a key with few do not wait for those of a key with many", async () => {
    const parts = new Parts();
    parts.arrive("first", 6, "loud");
    await nextTurn();
    parts.arrive("second", 6, "loud");
    await Promise.resolve();
    await Promise.resolve();
    for (let count = 0; count < 100; count++) parts.arrive(`loud ${count}`, 3, "loud");
    parts.arrive("quiet 0", 3, "quiet");
    parts.arrive("quiet 1", 3, "quiet");
    parts.done.splice(0);
    expect(await parts.turn()).toEqual(["loud 0", "quiet 0"]);
    expect(await parts.turn()).toEqual(["loud 1", "quiet 1"]);
    expect(await parts.turn()).toEqual(["loud 2", "loud 3"]);
  });

  it("are done in each turn, however long the rest of it takes", async () => {
    const parts = new Parts();
    parts.arrive("a", 6);
    await Promise.resolve();
    await Promise.resolve();
    parts.arrive("b", 1);
    parts.nowMs += 1_000;
    parts.arrive("c", 1);
    expect(parts.done.splice(0)).toEqual(["a"]);
    expect(await parts.turn()).toEqual(["b", "c"]);
  });

  it("are forgotten when they are done, even if others wait all the time", async () => {
    const parts = new Parts();
    const all: WeakRef<object>[] = [];
    const arrive = (): void => {
      const part = { text: "x" };
      all.push(new WeakRef(part));
      parts.turns.take("key", () => {
        parts.nowMs += part.text.length / 100;
      });
    };
    arrive();
    parts.nowMs += 6;
    for (let count = 0; count < 200; count++) arrive();
    for (let turn = 0; turn < 100; turn++) {
      for (let count = 0; count < 128; count++) arrive();
      await nextTurn();
    }
    collectGarbage();
    expect(all.length).toBeGreaterThan(10_000);
    expect(all.filter((part) => part.deref() !== undefined).length).toBeLessThan(2_000);
  });

  it("tell how long they had to wait, those that still do included, once", async () => {
    const parts = new Parts();
    parts.arrive("a", 8);
    await Promise.resolve();
    await Promise.resolve();
    parts.arrive("b", 8);
    parts.arrive("c", 8);
    parts.nowMs += 7;
    expect(parts.turns.takeLongestWaitMs()).toBe(7);
    await nextTurn();
    expect(parts.done).toEqual(["a", "b"]);
    // "b" waited for 7, "c" for 15 by now.
    expect(parts.turns.takeLongestWaitMs()).toBe(15);
    await nextTurn();
    expect(parts.done).toEqual(["a", "b", "c"]);
    expect(parts.turns.takeLongestWaitMs()).toBe(15);
    expect(parts.turns.takeLongestWaitMs()).toBe(0);
  });
});

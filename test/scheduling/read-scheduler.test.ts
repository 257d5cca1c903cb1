import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { ReadScheduler } from "../../src/scheduling/read-scheduler.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Reads between two looks at the clock. */
const GROUP = 32;

/** Reads of responses, each with a duration on the test's clock. */
class Parts {
  nowMs = 100;
  readonly turns = new ReadScheduler(() => this.nowMs);
  readonly done: string[] = [];

  arrive(name: string, tookMs: number, { key = "key", bytes = 1 }: { key?: string; bytes?: number } = {}): void {
    this.turns.take(key, () => {
      this.done.push(name);
      // As in a stream's reader, the work is asynchronous.
      queueMicrotask(() => queueMicrotask(() => (this.nowMs += tookMs)));
      return bytes;
    });
  }

  /** Adds `count` reads and returns their names in order. */
  arriveMany({ count, tookMs, key = "key" }: { count: number; tookMs: number; key?: string }): string[] {
    const names = Array.from({ length: count }, (_, index) => `${key} ${index}`);
    for (const name of names) this.arrive(name, tookMs, { key });
    return names;
  }

  /** Runs the next event-loop turn and returns the reads it finished. */
  async turn(): Promise<string[]> {
    await nextTurn();
    return this.done.splice(0);
  }
}

describe("reads of responses", () => {
  it("that arrive in one turn run together at its end, before any continuation", async () => {
    const parts = new Parts();
    for (const name of ["a", "b"]) {
      parts.turns.take("key", () => {
        parts.done.push(name);
        queueMicrotask(() => parts.done.push(`${name} goes on`));
        return 1;
      });
    }
    await Promise.resolve();
    expect(parts.done).toEqual([]);
    expect(await parts.turn()).toEqual(["a", "b", "a goes on", "b goes on"]);
    expect(parts.turns.takeLongestWaitMs()).toBe(0);
  });

  it("of a key wait for later turns, in order, when the time is used up", async () => {
    const parts = new Parts();
    const all = parts.arriveMany({ count: 3 * GROUP, tookMs: 6 / GROUP });
    // Each group but the last uses up the time.
    expect(await parts.turn()).toEqual(all.slice(0, GROUP));
    // A later read does not overtake, although there would be time.
    parts.arrive("late", 0);
    expect(await parts.turn()).toEqual(all.slice(GROUP, 2 * GROUP));
    expect(await parts.turn()).toEqual(all.slice(2 * GROUP));
    expect(await parts.turn()).toEqual(["late"]);
  });

  it("run in one turn while there is time, up to eight groups", async () => {
    const parts = new Parts();
    const all = parts.arriveMany({ count: 9 * GROUP, tookMs: 0.5 / GROUP });
    expect(await parts.turn()).toEqual(all.slice(0, 8 * GROUP));
    expect(await parts.turn()).toEqual(all.slice(8 * GROUP));
  });

  it("that are large form smaller groups between looks at the clock", async () => {
    const parts = new Parts();
    for (const name of ["a", "b", "c"]) parts.arrive(name, 3, { bytes: 10_000 });
    expect(await parts.turn()).toEqual(["a", "b"]);
    expect(await parts.turn()).toEqual(["c"]);
  });

  it("of a key with few do not wait for those of a key with many", async () => {
    const parts = new Parts();
    const loud = parts.arriveMany({ count: 2 * GROUP, tookMs: 6 / GROUP, key: "loud" });
    parts.arrive("quiet 0", 0, { key: "quiet" });
    parts.arrive("quiet 1", 0, { key: "quiet" });
    expect(await parts.turn()).toEqual([loud[0], "quiet 0", loud[1], "quiet 1", ...loud.slice(2, GROUP - 2)]);
    parts.arrive("quiet 2", 0, { key: "quiet" });
    expect((await parts.turn()).slice(0, 3)).toEqual([loud[GROUP - 2], "quiet 2", loud[GROUP - 1]]);
  });

  it("run in each turn, however long the rest of it takes", async () => {
    const parts = new Parts();
    parts.arrive("a", 6);
    expect(await parts.turn()).toEqual(["a"]);
    parts.arrive("b", 1);
    parts.nowMs += 1_000;
    parts.arrive("c", 1);
    expect(await parts.turn()).toEqual(["b", "c"]);
  });

  it("are garbage-collected when done, even if others are always waiting", async () => {
    const parts = new Parts();
    const all: WeakRef<object>[] = [];
    const arrive = (): void => {
      const part = { text: "x" };
      all.push(new WeakRef(part));
      parts.turns.take("key", () => {
        parts.nowMs += part.text.length / 100;
        return 1;
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

  it("report their waiting time once, including those still waiting", async () => {
    const parts = new Parts();
    const all = parts.arriveMany({ count: 2 * GROUP, tookMs: 8 / GROUP });
    parts.nowMs += 7;
    expect(parts.turns.takeLongestWaitMs()).toBe(7);
    expect(await parts.turn()).toEqual(all.slice(0, GROUP));
    // The first group has waited for 7, the second for 15.
    expect(parts.turns.takeLongestWaitMs()).toBe(15);
    expect(await parts.turn()).toEqual(all.slice(GROUP));
    expect(parts.turns.takeLongestWaitMs()).toBe(15);
    expect(parts.turns.takeLongestWaitMs()).toBe(0);
  });
});

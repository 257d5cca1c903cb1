import { describe, expect, it } from "vitest";
import { Turns } from "../../src/scheduling/turns.ts";

const never = new AbortController().signal;

interface NotedWork {
  readonly work: () => Promise<string>;
  readonly end: () => void;
}

/** Work that notes its name when it begins, and that the test ends. */
function notedWork(began: string[]): (name: string) => NotedWork {
  return (name) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    return {
      work() {
        began.push(name);
        return promise;
      },
      end: () => resolve(name),
    };
  };
}

describe("turns", () => {
  it("run one piece of work at a time, for the keys in turn", async () => {
    const began: string[] = [];
    const turns = new Turns(1);
    const works = ["a1", "a2", "a3", "b1"].map(notedWork(began));
    const results = works.map(({ work }, at) => turns.run(at === 3 ? "b" : "a", never, work));
    for (const [at, { end }] of [works[0]!, works[1]!, works[3]!, works[2]!].entries()) {
      await expect.poll(() => began).toHaveLength(at + 1);
      end();
    }
    expect(await Promise.all(results)).toEqual(["a1", "a2", "a3", "b1"]);
    expect(began).toEqual(["a1", "a2", "b1", "a3"]);
  });

  it("run the configured number of pieces of work at a time, for the keys in turn", async () => {
    const began: string[] = [];
    const turns = new Turns(2);
    const works = ["a1", "a2", "a3", "a4", "b1"].map(notedWork(began));
    const results = works.map(({ work }, at) => turns.run(at === 4 ? "b" : "a", never, work));
    await expect.poll(() => began).toEqual(["a1", "a2"]);
    works[1]!.end();
    await expect.poll(() => began).toEqual(["a1", "a2", "a3"]);
    works[0]!.end();
    await expect.poll(() => began).toEqual(["a1", "a2", "a3", "b1"]);
    for (const { end } of works) end();
    expect(await Promise.all(results)).toEqual(["a1", "a2", "a3", "a4", "b1"]);
    expect(began.at(-1)).toBe("a4");
  });

  it("run no more pieces of work of a key than configured, and others meanwhile", async () => {
    const began: string[] = [];
    const turns = new Turns(3, { ofKey: 1 });
    const works = ["a1", "a2", "a3", "b1", "b2", "c1", "d1"].map(notedWork(began));
    const results = works.map(({ work }, at) => turns.run("aaabbcd"[at]!, never, work));
    await expect.poll(() => began).toEqual(["a1", "b1", "c1"]);
    works[0]!.end();
    // The queue of d began last, and the others run.
    await expect.poll(() => began).toEqual(["a1", "b1", "c1", "a2"]);
    works[3]!.end();
    await expect.poll(() => began).toEqual(["a1", "b1", "c1", "a2", "b2"]);
    works[5]!.end();
    await expect.poll(() => began).toEqual(["a1", "b1", "c1", "a2", "b2", "d1"]);
    for (const { end } of works) end();
    await Promise.all(results);
    expect(began.at(-1)).toBe("a3");
    // All turns are free again.
    expect(await Promise.all("abc".split("").map((key) => turns.run(key, never, async () => key)))).toHaveLength(3);
  });

  it("go on after work that fails", async () => {
    const turns = new Turns(1);
    const failing = turns.run("a", never, () => Promise.reject(new Error("no disk")));
    const next = turns.run("a", never, () => Promise.resolve("next"));
    await expect(failing).rejects.toThrow("no disk");
    expect(await next).toBe("next");
  });

  it("leave out work whose signal aborts before it has begun", async () => {
    const began: string[] = [];
    const turns = new Turns(1);
    const work = notedWork(began);
    const [first, late, last] = [work("first"), work("late"), work("last")];
    const limit = new AbortController();
    const running = turns.run("a", limit.signal, first.work);
    const leaving = turns.run("a", limit.signal, late.work);
    const waiting = turns.run("a", never, last.work);
    limit.abort(new Error("too late"));
    await expect(leaving).rejects.toThrow("too late");
    await expect(turns.run("a", limit.signal, late.work)).rejects.toThrow("too late");
    first.end();
    last.end();
    expect([await running, await waiting]).toEqual(["first", "last"]);
    expect(began).toEqual(["first", "last"]);
  });
});

import { beforeEach, describe, expect, it } from "vitest";
import { BeginRate, type LoadWindow } from "../../../src/edge/overload/begin-rate.ts";
import { FairQueue } from "../../../src/core/fair-queue.ts";
import { UnderWay } from "../../../src/edge/overload/under-way.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { memoryStep, usedShare } from "../../../src/edge/overload/memory-steps.ts";

describe("the fair queue", () => {
  const waiters = (text: string) => text.split(" ").map((name) => ({ key: name[0]!, name }));

  it("lets the keys take turns, each with its oldest", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 a2 a3 b1 a4 c1 b2")) queue.add(waiter);
    const order = Array.from({ length: 7 }, () => queue.next()!.name);
    expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
    expect(queue.next()).toBeUndefined();
    expect([queue.size, queue.keys]).toEqual([0, 0]);
  });

  it("forgets who leaves, and the key with its last", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    const [a1, a2, b1] = waiters("a1 a2 b1");
    for (const waiter of [a1!, a2!, b1!]) queue.add(waiter);
    queue.remove(a1!);
    queue.remove(a1!);
    queue.remove(b1!);
    expect([queue.size, queue.keys, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([1, 1, 1, 0]);
    expect(queue.next()).toBe(a2);
  });

  it("gives back who has waited too long, of all keys", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 a2 b1 a3 b3")) queue.add(waiter);
    const late = queue.takeLate(({ name }) => Number(name[1]) < 3);
    expect(late.map(({ name }) => name)).toEqual(["a1", "a2", "b1"]);
    expect([queue.size, queue.next()!.name, queue.next()!.name]).toEqual([2, "a3", "b3"]);
  });
});

describe("the steps of memory", () => {
  it("are entered at 85, 92 and 95 percent", () => {
    expect([0, 0.849, 0.85, 0.919, 0.92, 0.949, 0.95, 1.2].map((share) => memoryStep(share, 0))).toEqual([
      0, 0, 1, 1, 2, 2, 3, 3,
    ]);
  });

  it("are left a little later", () => {
    expect(memoryStep(0.93, 3)).toBe(3);
    expect(memoryStep(0.91, 3)).toBe(2);
    expect(memoryStep(0.83, 2)).toBe(1);
    expect(memoryStep(0.81, 1)).toBe(0);
  });

  it("follow the scarcest memory; what has no limit is never scarce", () => {
    expect(usedShare([])).toBe(0);
    expect(
      usedShare([
        { usedBytes: 50, limitBytes: 100 },
        { usedBytes: 900, limitBytes: 1000 },
        { usedBytes: 1e12, limitBytes: Infinity },
      ]),
    ).toBe(0.9);
  });
});

describe("the rate of beginnings", () => {
  const window = { busyShare: 0.5, lateMs: 0, started: 90, starting: 10, firstContentMs: 200, wholeMs: 2_000 };
  const learnt = (change: Partial<LoadWindow>): BeginRate => {
    const rate = new BeginRate();
    for (let windows = 0; windows < 100; windows++) rate.learn({ ...window, ...change });
    return rate;
  };

  /** How many it lets begin in a second, without what was saved up. */
  const perSecond = (rate: BeginRate): number => {
    const atMs = 1e9;
    while (rate.take(atMs)) continue;
    let begun = 0;
    for (let ms = 1; ms <= 1_000; ms++) while (rate.take(atMs + ms)) begun += 1;
    return begun;
  };

  it("is large as long as nothing is known", () => {
    const rate = new BeginRate();
    let begun = 0;
    while (rate.take(1e9)) begun += 1;
    expect(begun).toBe(250);
    expect(perSecond(rate)).toBe(1_000);
  });

  it("is as many as end when the event loop is as busy as it may be", () => {
    expect(perSecond(learnt({ busyShare: 1, lateMs: 7.5 }))).toBeCloseTo(50, 0);
  });

  it("is more while there is room, for all that would fit when there is much", () => {
    expect(perSecond(learnt({ busyShare: 0.85 }))).toBeGreaterThan(55);
    expect(perSecond(learnt({ busyShare: 0.1 }))).toBeGreaterThan(2_500);
  });

  it("is less when the event loop is late, the later the less, and never less than half", () => {
    const inTime = perSecond(learnt({ busyShare: 1 }));
    const late = perSecond(learnt({ busyShare: 1, lateMs: 10 }));
    expect(late).toBeLessThan(inTime);
    expect(perSecond(learnt({ busyShare: 1, lateMs: 30 }))).toBeLessThan(late);
    expect(perSecond(learnt({ busyShare: 1, lateMs: 1_000 }))).toBe(25);
  });

  it("counts those without content as what the others take, but for those that will have ended", () => {
    const alone = perSecond(learnt({ busyShare: 0.6 }));
    expect(perSecond(learnt({ busyShare: 0.6, starting: 50 }))).toBeLessThan(alone);
    expect(perSecond(learnt({ busyShare: 0.6, starting: 50, firstContentMs: 1_000 }))).toBeGreaterThan(alone);
  });

  it("says how long it takes to begin some, carefully", () => {
    const rate = learnt({ busyShare: 1, lateMs: 7.5 });
    expect(rate.usualMs(50)).toBeCloseTo(900, -1);
    rate.learn({ ...window, busyShare: 1, lateMs: 500 });
    rate.learn({ ...window, busyShare: 1, lateMs: 500 });
    rate.learn({ ...window, busyShare: 1, lateMs: 500 });
    expect(rate.likelyMs(50)).toBe(2_000);
    expect(rate.usualMs(50)).toBeLessThan(1_500);
  });

  it("does not take an idle time for one in which much was begun", () => {
    expect(learnt({ busyShare: 0.01 }).usualMs(1_000)).toBeGreaterThan(900);
  });

  it("lets nobody save up for longer than a quarter of a second", () => {
    const rate = learnt({ busyShare: 1, lateMs: 7.5 });
    let begun = 0;
    while (rate.take(60_000)) begun += 1;
    expect(begun).toBe(12);
  });
});

describe("the completions under way", () => {
  let clock: FakeClock;
  let underWay: UnderWay;
  beforeEach(() => {
    clock = new FakeClock();
    underWay = new UnderWay(clock);
  });
  /** One with content after some time, and its end after some more. */
  const one = (firstMs: number, restMs: number): void => {
    const place = underWay.begin();
    clock.advance(firstMs);
    place.started();
    clock.advance(restMs);
    place.end();
  };

  it("are starting until their first content, and count until their end", () => {
    const place = underWay.begin();
    expect([underWay.count, underWay.progress()]).toMatchObject([1, { starting: 1, started: 0 }]);
    place.started();
    place.started();
    expect(underWay.progress()).toMatchObject({ starting: 0, started: 1 });
    place.end();
    underWay.begin().end();
    expect([underWay.count, underWay.progress()]).toMatchObject([0, { starting: 0, started: 0 }]);
  });

  it("take as long as the latest ones did, and at first as long as the first has taken so far", () => {
    underWay.begin();
    clock.advance(700);
    expect(underWay.progress()).toMatchObject({ firstContentMs: 0, wholeMs: 700 });
    one(100, 900);
    one(300, 1_700);
    expect(underWay.progress()).toMatchObject({ firstContentMs: 200, wholeMs: 1_500 });
    for (let windows = 0; windows < 300; windows++) underWay.progress();
    one(50, 50);
    expect(underWay.progress().wholeMs).toBeCloseTo(100, 0);
  });

  it("are not expected to have content soon when they have waited for it for long", () => {
    const hanging = underWay.begin();
    clock.advance(2_001);
    underWay.begin();
    expect([underWay.count, underWay.progress()]).toMatchObject([2, { starting: 1 }]);
    hanging.started();
    expect(underWay.progress()).toMatchObject({ starting: 1, started: 1 });
  });
});

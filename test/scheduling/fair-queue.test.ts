import { describe, expect, it } from "vitest";
import { FairQueue } from "../../src/scheduling/fair-queue.ts";

describe("the fair queue", () => {
  const waiters = (text: string) => text.split(" ").map((name) => ({ key: name[0]!, name }));

  it("alternates between keys, oldest waiter first", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 a2 a3 b1 a4 c1 b2")) queue.add(waiter);
    const order = Array.from({ length: 7 }, () => queue.next()!.name);
    expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
    expect(queue.next()).toBeUndefined();
    expect([queue.size, queue.keys]).toEqual([0, 0]);
  });

  it("skips keys whose oldest waiter is not eligible", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 a2 b1 c1")) queue.add(waiter);
    const notA = ({ key }: { key: string }): boolean => key !== "a";
    expect([queue.next(notA)!.name, queue.next(notA)!.name, queue.next(notA)]).toEqual(["b1", "c1", undefined]);
    expect([queue.size, queue.next()!.name]).toEqual([2, "a1"]);
  });

  it("removes waiters, and a key with its last waiter", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    const [a1, a2, b1] = waiters("a1 a2 b1");
    for (const waiter of [a1!, a2!, b1!]) queue.add(waiter);
    queue.remove(a1!);
    queue.remove(a1!);
    queue.remove(b1!);
    expect([queue.size, queue.keys, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([1, 1, 1, 0]);
    expect(queue.next()).toBe(a2);
  });

  it("gives up the newest waiter of the key with the most", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 b1 b2 b3 a2 c1")) queue.add(waiter);
    expect(queue.most).toBe(3);
    expect(Array.from({ length: 3 }, () => queue.takeNewestOfMost()!.name)).toEqual(["b3", "a2", "b2"]);
    queue.takeAll();
    expect([queue.most, queue.takeNewestOfMost()]).toEqual([0, undefined]);
  });

  it("removes and returns expired waiters of all keys", () => {
    const queue = new FairQueue<{ key: string; name: string }>();
    for (const waiter of waiters("a1 a2 b1 a3 b3")) queue.add(waiter);
    const late = queue.takeLate(({ name }) => Number(name[1]) < 3);
    expect(late.map(({ name }) => name)).toEqual(["a1", "a2", "b1"]);
    expect([queue.size, queue.next()!.name, queue.next()!.name]).toEqual([2, "a3", "b3"]);
  });
});

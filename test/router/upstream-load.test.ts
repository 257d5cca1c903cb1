import { describe, expect, it } from "vitest";
import type { Mode } from "../../src/core/router.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A load that knows these times of streams. */
function loadOf(...timesMs: readonly number[]) {
  const clock = new FakeClock();
  const load = new UpstreamLoad(clock);
  const answer = (ms: number, { mode = "stream", account = "a" }: { mode?: Mode; account?: string } = {}): void => {
    const call = load.begin(mode, account);
    clock.advance(ms);
    call.answered();
    call.end("answered");
  };
  for (const ms of timesMs) answer(ms);
  return { clock, load, answer };
}

describe("the expected time", () => {
  it("is not known before the first answer", () => {
    expect(loadOf().load.expectedMs("stream", "a")).toBe(0);
  });

  it("is the mean of the first answers, then follows the newest ones", () => {
    expect(loadOf(100, 200, 300).load.expectedMs("stream", "a")).toBeCloseTo(200);
    const { load, answer } = loadOf(...Array<number>(50).fill(100));
    for (let count = 0; count < 50; count++) answer(500);
    expect(load.expectedMs("stream", "a")).toBeGreaterThan(490);
  });

  it("is another one for whole answers", () => {
    const { load, answer } = loadOf(100);
    answer(5_000, { mode: "whole" });
    expect([load.expectedMs("stream", "a"), load.expectedMs("whole", "a")]).toEqual([100, 5_000]);
  });

  it("grows while calls wait longer than that, and none is answered", () => {
    const { clock, load } = loadOf(100);
    const [first, second] = [load.begin("stream", "a"), load.begin("stream", "a")];
    clock.advance(90);
    expect(load.expectedMs("stream", "a")).toBe(100);
    clock.advance(400);
    expect(load.expectedMs("stream", "a")).toBe(490);
    first.answered();
    expect(load.expectedMs("stream", "a")).toBeLessThan(310);
    second.end("unknown");
    expect(load.expectedMs("stream", "a")).toBeLessThan(310);
  });

  it("does not depend on calls that end without an answer, unless they fail: then ten seconds are expected for ten seconds", () => {
    const { clock, load, answer } = loadOf(100);
    const wait = (ms: number, how: "failed" | "unknown"): number => {
      const call = load.begin("stream", "a");
      clock.advance(ms);
      call.end(how);
      return load.expectedMs("stream", "a");
    };
    expect(wait(1_000, "unknown")).toBe(100);
    expect(wait(1, "failed")).toBe(10_000);
    clock.advance(9_999);
    expect(load.expectedMs("stream", "a")).toBe(10_000);
    clock.advance(1);
    expect(load.expectedMs("stream", "a")).toBe(100);
    expect(wait(1, "failed")).toBe(10_000);
    answer(100);
    expect(load.expectedMs("stream", "a")).toBeCloseTo(100);
  });

  it("is what an account met itself within 30 s, and the median of all for another one", () => {
    const { clock, load, answer } = loadOf(...Array<number>(20).fill(20));
    for (let count = 0; count < 30; count++) answer(8_000, { account: "hostile" });
    expect(load.expectedMs("stream", "b")).toBeCloseTo(20);
    answer(20);
    expect(load.expectedMs("stream", "a")).toBeCloseTo(20);
    expect(load.expectedMs("stream", "hostile")).toBeCloseTo(8_000);
    answer(600, { account: "b" });
    expect(load.expectedMs("stream", "c")).toBeCloseTo(600);
    for (const account of ["d", "e"]) answer(30, { account });
    expect(load.expectedMs("stream", "b")).toBeCloseTo(600);
    clock.advance(30_000);
    expect(load.expectedMs("stream", "b")).toBeCloseTo(30);
  });

  it("does not grow because a single other account waits", () => {
    const { clock, load, answer } = loadOf(100);
    load.begin("stream", "hostile");
    clock.advance(8_000);
    expect(load.expectedMs("stream", "a")).toBe(100);
    expect(load.expectedMs("stream", "hostile")).toBe(8_000);
    load.begin("stream", "b");
    clock.advance(500);
    expect(load.expectedMs("stream", "a")).toBe(500);
    answer(100);
    expect(load.expectedMs("stream", "a")).toBe(100);
  });

  it("keeps times of 64 accounts", () => {
    const { load, answer } = loadOf(5_000);
    for (let number = 0; number < 64; number++) answer(100, { account: `b${number}` });
    expect(load.expectedMs("stream", "a")).toBeCloseTo(100);
  });

  it("is that of the next answer after it was forgotten", () => {
    const { load, answer } = loadOf(900, 900);
    load.forget("stream");
    answer(100);
    expect(load.expectedMs("stream", "a")).toBe(100);
  });
});

it("counts calls until they end, not until they are answered", () => {
  const { load } = loadOf();
  const calls = [load.begin("stream", "a"), load.begin("whole", "a")];
  calls[0]!.answered();
  expect(load.inFlight).toBe(2);
  for (const call of calls) call.end("answered");
  expect(load.inFlight).toBe(0);
});

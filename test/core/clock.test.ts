import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { sleep, waitAtMost } from "../../src/core/clock.ts";
import { FakeClock } from "../support/fake-clock.ts";

function begin(signal?: AbortSignal) {
  const clock = new FakeClock();
  const seen = { awake: false };
  const slept = sleep(clock, 1_000, signal).then(() => void (seen.awake = true));
  return { clock, seen, slept };
}

describe("sleep", () => {
  it("ends after its time", async () => {
    const { signal } = new AbortController();
    const { clock, seen } = begin(signal);
    await clock.pass(999);
    expect(seen.awake).toBe(false);
    await clock.pass(1);
    expect(seen.awake).toBe(true);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends when its signal aborts, and leaves no timer", async () => {
    const controller = new AbortController();
    const { clock, slept } = begin(controller.signal);
    controller.abort();
    await slept;
    expect(clock.pending).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("does not begin when its signal has aborted before", async () => {
    const { clock, slept } = begin(AbortSignal.abort());
    await slept;
    expect(clock.pending).toBe(0);
  });
});

describe("a wait for work", () => {
  it.each(["resolve", "reject"] as const)("ends when the work settles (%s), and leaves no timer", async (settle) => {
    const clock = new FakeClock();
    const { signal } = new AbortController();
    const work = Promise.withResolvers<void>();
    const waited = waitAtMost(work.promise, { clock, limitMs: 1_000, signal });
    await clock.pass(999);
    expect(clock.pending).toBe(1);
    work[settle]();
    await waited;
    expect(clock.pending).toBe(0);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends after its limit when the work does not", async () => {
    const clock = new FakeClock();
    const work = new Promise<never>(() => undefined);
    await clock.drive(waitAtMost(work, { clock, limitMs: 1_000, signal: undefined }));
    expect(clock.pending).toBe(0);
  });
});

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { sleep } from "../../src/core/clock.ts";
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

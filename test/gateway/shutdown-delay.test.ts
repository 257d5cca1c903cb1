import { describe, expect, it } from "vitest";
import { ShutdownDelay } from "../../src/gateway/starting.ts";
import { FakeClock } from "../support/fake-clock.ts";

function begin(shutdownDelayMs: number) {
  const clock = new FakeClock();
  const delay = new ShutdownDelay(clock, shutdownDelayMs);
  const seen = { over: false };
  const wait = (): Promise<void> => delay.wait().then(() => void (seen.over = true));
  return { clock, delay, seen, wait };
}

describe("the shutdown delay", () => {
  it("lasts for the configured time", async () => {
    const { clock, seen, wait } = begin(5_000);
    void wait();
    await clock.pass(4_999);
    expect(seen.over).toBe(false);
    await clock.pass(1);
    expect(seen.over).toBe(true);
  });

  it("ends at once when it is 0, and when it is cut short before or during the wait", async () => {
    const none = begin(0);
    await none.wait();
    const cut = begin(5_000);
    const waiting = cut.wait();
    cut.delay.cut();
    await waiting;
    expect(cut.clock.pending).toBe(0);
    const before = begin(5_000);
    before.delay.cut();
    await before.wait();
    expect(before.seen.over).toBe(true);
  });
});

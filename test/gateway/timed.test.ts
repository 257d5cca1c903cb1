import { expect, it } from "vitest";
import { timed } from "../../src/gateway/timed.ts";
import type { StoreCall } from "../../src/telemetry/metrics.ts";
import { FakeClock } from "../support/fake-clock.ts";

it("times the named methods of a port, failed ones too, and leaves the others as they are", async () => {
  const clock = new FakeClock();
  const calls: StoreCall[] = [];
  const port = {
    async take(amount: number): Promise<number> {
      clock.advance(5);
      if (amount < 0) throw new Error("no");
      return amount * 2;
    },
    close: async () => "closed",
  };
  const stored = (call: StoreCall): void => void calls.push(call);
  const copy = timed(port, { take: "rates_take" }, { clock, stored, store: "redis" });
  expect(await copy.take(2)).toBe(4);
  await expect(copy.take(-1)).rejects.toThrow("no");
  expect(await copy.close()).toBe("closed");
  const call = { store: "redis", operation: "rates_take", durationMs: 5 };
  expect(calls).toEqual([
    { ...call, failed: false },
    { ...call, failed: true },
  ]);
});

import { expect, it } from "vitest";
import type { HealthNote } from "../../src/core/health-notes.ts";
import { shareHealth } from "../../src/gateway/shared-health.ts";
import { FakeClock } from "../support/fake-clock.ts";

const NOTE: HealthNote = { down: ["a/m"], up: ["b/m"] };

it("exchanges notes each two seconds, and forgets those of others when that fails", async () => {
  const clock = new FakeClock();
  const heeded: (readonly HealthNote[])[] = [];
  let own: HealthNote | undefined = NOTE;
  let exchanges = 0;
  const stop = shareHealth({
    clock,
    notes: {
      async exchange() {
        exchanges += 1;
        if (exchanges === 2) throw new Error("unavailable");
        return [NOTE];
      },
    },
    router: { healthNote: () => own, heed: (others) => void heeded.push(others) },
  });
  await clock.pass(2_000);
  await clock.pass(2_000);
  await clock.pass(2_000);
  expect(heeded).toEqual([[NOTE], [], [NOTE]]);
  // Without routes nothing is exchanged.
  own = undefined;
  await clock.pass(2_000);
  expect([heeded.at(-1), exchanges]).toEqual([[], 3]);
  stop();
  expect(clock.pending).toBe(0);
});

import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { type Job, jobsOf, startHousekeeping } from "../../src/gateway/housekeeping.ts";
import type { Store } from "../../src/store/store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

const DAY_MS = 86_400_000;
const log = createLogger("silent");

/** The ledger's jobs on a store with this `prune`. */
function pruning(clock: FakeClock, prune: (beforeMs: number) => Promise<number>): Job[] {
  const store = { ledger: { prune } } as unknown as Store;
  const config = { ledger: { retentionMs: 400 * DAY_MS } } as Config;
  return jobsOf(config, { store, clock }).filter(({ name }) => name.includes("ledger"));
}

describe("housekeeping", () => {
  it("removes ledger entries past their retention, a bounded number at a time until none is left", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    const left = [1_000, 1_000, 7, 0];
    const asked: number[] = [];
    const jobs = pruning(clock, async (beforeMs) => {
      asked.push(beforeMs);
      return left.shift()!;
    });
    const housekeeping = startHousekeeping(jobs, { clock, log });
    await clock.pass(600_000);
    await housekeeping.close();
    expect(left).toEqual([]);
    expect(asked).toHaveLength(4);
    expect(Math.floor(asked[0]! / DAY_MS)).toBe(100);
  });

  it.each([
    [400, 800],
    [900, 900],
  ])("with a ledger retention of %i days, keeps usage sums for %i days", async (entryDays, usageDays) => {
    const clock = new FakeClock(1_000 * DAY_MS);
    const asked: number[] = [];
    const prune = async (beforeMs: number): Promise<number> => {
      asked.push(beforeMs);
      return 0;
    };
    const config = { ledger: { retentionMs: entryDays * DAY_MS } } as Config;
    const jobs = jobsOf(config, { store: { usage: { prune } } as unknown as Store, clock });
    await jobs.find(({ name }) => name.includes("sums"))?.run(new AbortController().signal);
    expect(asked).toEqual([(1_000 - usageDays) * DAY_MS]);
  });

  it("stops between two removals when the gateway closes", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    let asked = 0;
    const jobs = pruning(clock, async () => {
      asked += 1;
      // Never reports that nothing is left.
      await new Promise((resolve) => setImmediate(resolve));
      return 1_000;
    });
    const housekeeping = startHousekeeping(jobs, { clock, log });
    await clock.pass(600_000);
    expect(asked).toBeGreaterThan(0);
    await housekeeping.close();
    const atClose = asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(atClose);
  });

  it("runs a job again after it has failed", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    let asked = 0;
    const housekeeping = startHousekeeping(
      pruning(clock, async () => {
        asked += 1;
        throw new Error("away");
      }),
      { clock, log },
    );
    await clock.pass(600_000);
    await clock.pass(600_000);
    await housekeeping.close();
    expect(asked).toBe(2);
  });
});

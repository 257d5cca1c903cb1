import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { type Job, jobsOf, rankJob, startJobs } from "../../src/gateway/jobs.ts";
import type { Store } from "../../src/store/store.ts";
import { createLogger, withLines } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

const DAY_MS = 86_400_000;

function start(...jobs: Job[]) {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const to = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = withLines(pino({}, to), { lines: to });
  return { clock, lines, running: startJobs(jobs, { clock, log }) };
}

describe("jobs", () => {
  it("runs each job at its interval, and logs a count above zero", async () => {
    let runs = 0;
    const { clock, lines, running } = start({
      name: "tidy",
      everyMs: 1_000,
      run: async () => (runs++ === 1 ? 7 : 0),
    });
    await clock.pass(700);
    expect(runs).toBe(0);
    await clock.pass(10_000);
    expect(runs).toBeGreaterThanOrEqual(10);
    expect(runs).toBeLessThanOrEqual(14);
    expect(lines).toMatchObject([{ job: "tidy", count: 7 }]);
    await running.close();
    const done = runs;
    await clock.pass(10_000);
    expect(runs).toBe(done);
  });

  it("logs a job that fails, and runs it at the next interval", async () => {
    let runs = 0;
    const failing = async (): Promise<number> => {
      runs += 1;
      throw new Error("away");
    };
    const { clock, lines, running } = start({ name: "tidy", everyMs: 1_000, run: failing });
    await clock.pass(3_000);
    expect(runs).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatchObject({ job: "tidy", cause: "Error: away" });
    await running.close();
  });

  it("closes when the running jobs have ended", async () => {
    const answer = Promise.withResolvers<number>();
    const { clock, running } = start({ name: "tidy", everyMs: 1_000, run: () => answer.promise });
    await clock.pass(1_000);
    let closed = false;
    const closing = running.close().then(() => (closed = true));
    await clock.pass(10_000);
    expect(closed).toBe(false);
    answer.resolve(0);
    await closing;
    expect(clock.pending).toBe(0);
  });
});

const log = createLogger("silent");

/** The ledger's jobs on a store with this `prune`. */
function pruning(clock: FakeClock, prune: (beforeMs: number) => Promise<number>): Job[] {
  return pruningBy(clock, { prune, nowMs: async () => clock.now() });
}

/** The same with the time of the database. */
function pruningBy(
  clock: FakeClock,
  { prune, nowMs }: { prune: (beforeMs: number) => Promise<number>; nowMs: () => Promise<number> },
): Job[] {
  const store = { ledger: { prune }, nowMs } as unknown as Store;
  const config = {
    ledger: { retentionMs: 400 * DAY_MS },
    responses: { keptMs: DAY_MS },
    content: { keptMs: 2 * DAY_MS },
  } as Config;
  return jobsOf(config, { store, clock }).filter(({ name }) => name.includes("ledger entries past"));
}

describe("the gateway's jobs", () => {
  it("removes ledger entries past their retention, a bounded number at a time until none is left", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    const left = [1_000, 1_000, 7, 0];
    const asked: number[] = [];
    const jobs = pruning(clock, async (beforeMs) => {
      asked.push(beforeMs);
      return left.shift()!;
    });
    const running = startJobs(jobs, { clock, log });
    await clock.pass(600_000);
    await running.close();
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
    const config = {
      ledger: { retentionMs: entryDays * DAY_MS },
      responses: { keptMs: DAY_MS },
      content: { keptMs: 2 * DAY_MS },
    } as Config;
    const store = { usage: { prune }, nowMs: async () => clock.now() } as unknown as Store;
    const jobs = jobsOf(config, { store, clock });
    await jobs.find(({ name }) => name.includes("sums"))?.run(new AbortController().signal);
    expect(asked).toEqual([(1_000 - usageDays) * DAY_MS]);
  });

  it("removes by the database's time", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    const prune = vi.fn<(beforeMs: number) => Promise<number>>(async () => 0);
    const [job] = pruningBy(clock, { prune, nowMs: async () => 500 * DAY_MS - 1_800_000 });
    await job!.run(new AbortController().signal);
    expect(prune.mock.calls).toEqual([[100 * DAY_MS - 1_800_000]]);
  });

  it.each([900 * DAY_MS, -2 * 3_600_000])(
    "removes nothing while the database's clock is %i ms ahead of the process's",
    async (aheadMs) => {
      const clock = new FakeClock(1_000 * DAY_MS);
      const all = vi.fn<() => Promise<number>>(async () => 0);
      const store = new Proxy(
        { nowMs: async () => clock.now() + aheadMs },
        { get: (own, name) => Reflect.get(own, name) ?? new Proxy({}, { get: () => all }) },
      ) as unknown as Store;
      const config = {
        ledger: { retentionMs: 400 * DAY_MS },
        responses: { keptMs: DAY_MS },
        content: { keptMs: 2 * DAY_MS },
      } as Config;
      const removals = jobsOf(config, { store, clock }).filter(({ name }) => name.startsWith("remove "));
      expect(removals.length).toBeGreaterThanOrEqual(4);
      for (const { run } of removals)
        await expect(run(new AbortController().signal)).rejects.toThrow(/clocks .* differ by \d+ h/);
      expect(all).not.toHaveBeenCalled();
    },
  );

  it("stops between two removals when the gateway closes", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    let asked = 0;
    const jobs = pruning(clock, async () => {
      asked += 1;
      // Never reports that nothing is left.
      await new Promise((resolve) => setImmediate(resolve));
      return 1_000;
    });
    const running = startJobs(jobs, { clock, log });
    await clock.pass(600_000);
    expect(asked).toBeGreaterThan(0);
    await running.close();
    const atClose = asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(atClose);
  });

  it("runs a job again after it has failed", async () => {
    const clock = new FakeClock(500 * DAY_MS);
    let asked = 0;
    const running = startJobs(
      pruning(clock, async () => {
        asked += 1;
        throw new Error("away");
      }),
      { clock, log },
    );
    await clock.pass(600_000);
    await clock.pass(600_000);
    await running.close();
    expect(asked).toBe(2);
  });
});

describe("the job that ranks keys and accounts", () => {
  it("looks at all days once, then at those of the last month, in pieces of a month", async () => {
    const clock = new FakeClock();
    const spans: (readonly [daysAgo: number, days: number])[] = [];
    const usage: Parameters<typeof rankJob>[0]["usage"] = {
      async rank({ sinceMs, untilMs }) {
        spans.push([(clock.now() - untilMs) / DAY_MS, (untilMs - sinceMs) / DAY_MS]);
        return 1;
      },
    };
    const { run } = rankJob({ usage, clock });
    const { signal } = new AbortController();
    expect(await run(signal)).toBe(0);
    expect(spans).toEqual(Array.from({ length: 25 }, (_, index) => [32 * index, 32]));
    await run(signal);
    expect(spans.slice(25)).toEqual([[0, 32]]);
  });

  it("looks at the other pieces when one fails, rejects with the first error, and looks at all of them again", async () => {
    let asked = 0;
    const { run } = rankJob({
      usage: {
        async rank() {
          asked += 1;
          if (asked <= 2) throw new Error(`failure ${asked}`);
          return 0;
        },
      },
      clock: new FakeClock(),
    });
    const { signal } = new AbortController();
    await expect(run(signal)).rejects.toThrow("failure 1");
    expect(asked).toBe(25);
    await run(signal);
    expect(asked).toBe(50);
  });
});

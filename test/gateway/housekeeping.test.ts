import { pino } from "pino";
import { withLines } from "../../src/telemetry/logger.ts";
import { describe, expect, it } from "vitest";
import { type Job, startHousekeeping } from "../../src/gateway/housekeeping.ts";
import { FakeClock } from "../support/fake-clock.ts";

function start(...jobs: Job[]) {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const to = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = withLines(pino({}, to), { lines: to });
  return { clock, lines, housekeeping: startHousekeeping(jobs, { clock, log }) };
}

describe("housekeeping", () => {
  it("runs each job at its interval, and logs a count above zero", async () => {
    let runs = 0;
    const { clock, lines, housekeeping } = start({
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
    await housekeeping.close();
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
    const { clock, lines, housekeeping } = start({ name: "tidy", everyMs: 1_000, run: failing });
    await clock.pass(3_000);
    expect(runs).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatchObject({ job: "tidy", cause: "Error: away" });
    await housekeeping.close();
  });

  it("closes when the running jobs have ended", async () => {
    const answer = Promise.withResolvers<number>();
    const { clock, housekeeping } = start({ name: "tidy", everyMs: 1_000, run: () => answer.promise });
    await clock.pass(1_000);
    let closed = false;
    const closing = housekeeping.close().then(() => (closed = true));
    await clock.pass(10_000);
    expect(closed).toBe(false);
    answer.resolve(0);
    await closing;
    expect(clock.pending).toBe(0);
  });
});

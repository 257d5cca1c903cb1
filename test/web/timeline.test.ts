import { describe, expect, it } from "vitest";
import { toTimeline } from "../../web/requests/timeline.ts";
import { type Attempt, toAttemptMessage } from "../../src/core/attempt.ts";
import { attemptOf } from "../support/attempt.ts";

const attempt = (outcome: Attempt["outcome"], startMs: number, durationMs: number) =>
  toAttemptMessage(attemptOf({ outcome, startMs, durationMs }));

describe("the timeline of a request", () => {
  it("has the position of each attempt, and the backoff between two", () => {
    const attempts = [attempt("upstream_unavailable", 5, 15), attempt("served", 85, 100)];
    const { entries, firstToken } = toTimeline({ attempts, durationMs: 200, firstContentMs: 100 });
    expect(entries).toMatchObject([
      { from: 0.025, to: 0.1, wait: undefined },
      { from: 0.425, to: 0.925, wait: { from: 0.1, ms: 65 } },
    ]);
    expect(firstToken).toBe(0.5);
  });

  it("gives a skipped attempt no duration, and measures the wait from the previous attempt", () => {
    const attempts = [attempt("upstream_timeout", 0, 40), attempt("skipped", 40, 0), attempt("served", 50, 50)];
    const { entries } = toTimeline({ attempts, durationMs: 100 });
    expect(entries.map(({ wait }) => wait?.ms)).toEqual([undefined, undefined, 10]);
  });

  it("ignores waits within the rounding error", () => {
    const attempts = [attempt("upstream_timeout", 0, 40), attempt("served", 42, 50)];
    expect(toTimeline({ attempts, durationMs: 100 }).entries[1]?.wait).toBeUndefined();
  });

  it("ends with the last attempt if that outlasts the request, and accepts a duration of 0", () => {
    const long = toTimeline({ attempts: [attempt("cancelled", 10, 90)], durationMs: 50 });
    expect(long.entries[0]).toMatchObject({ from: 0.1, to: 1 });
    expect(toTimeline({ attempts: [], durationMs: 0 })).toEqual({ entries: [], firstToken: undefined });
  });
});

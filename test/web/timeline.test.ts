import { describe, expect, it } from "vitest";
import { type Span, toTimeline } from "../../web/requests/timeline.ts";
import { type Attempt, toAttemptMessage } from "../../src/core/attempt.ts";
import { attemptOf } from "../support/attempt.ts";

const attempt = (outcome: Attempt["outcome"], startMs: number, durationMs: number) =>
  toAttemptMessage(attemptOf({ outcome, startMs, durationMs }));
const short = (spans: readonly Span[]) => spans.map(({ phase, fromMs, toMs }) => `${phase} ${fromMs}-${toMs}`);

describe("the timeline of a request", () => {
  it("has the phases of each attempt, and the backoff between two", () => {
    const { entries, totalMs } = toTimeline({
      attempts: [attempt("upstream_unavailable", 5, 15), attempt("served", 85, 100)],
      attemptDetails: [
        { sentMs: 8, headMs: 19 },
        { sentMs: 85, headMs: 120, firstContentMs: 150 },
      ],
      durationMs: 200,
    });
    expect(totalMs).toBe(200);
    expect(entries.map(({ spans }) => short(spans))).toEqual([
      ["connect 5-8", "wait 8-19", "receive 19-20"],
      ["backoff 20-85", "connect 85-85", "wait 85-120", "think 120-150", "receive 150-185"],
    ]);
  });

  it("shows an attempt of which no times are kept as a whole, and one that has not come so far", () => {
    const attempts = [attempt("upstream_timeout", 0, 40), attempt("upstream_timeout", 40, 40)];
    const { entries } = toTimeline({ attempts, attemptDetails: [{}, { sentMs: 42 }], durationMs: 100 });
    expect(entries.map(({ spans }) => short(spans))).toEqual([["whole 0-40"], ["connect 40-42", "wait 42-80"]]);
    // Older servers send none.
    expect(toTimeline({ attempts, attemptDetails: [], durationMs: 100 }).entries[0]!.spans).toHaveLength(1);
  });

  it("keeps the phases within their attempt", () => {
    const { entries } = toTimeline({
      attempts: [attempt("served", 10, 10)],
      attemptDetails: [{ sentMs: 9, headMs: 25, firstContentMs: 5 }],
      durationMs: 30,
    });
    expect(short(entries[0]!.spans)).toEqual(["connect 10-10", "wait 10-20", "think 20-20", "receive 20-20"]);
  });

  it("gives a skipped attempt no time, and measures the wait from the attempt before", () => {
    const attempts = [attempt("upstream_timeout", 0, 40), attempt("skipped", 40, 0), attempt("served", 50, 50)];
    const { entries } = toTimeline({ attempts, attemptDetails: [], durationMs: 100 });
    expect(entries.map(({ spans }) => short(spans))).toEqual([["whole 0-40"], [], ["backoff 40-50", "whole 50-100"]]);
  });

  it("ignores waits within the rounding error, and has none beside a hedge", () => {
    const attempts = [attempt("upstream_timeout", 0, 40), attempt("served", 42, 50), attempt("cancelled", 20, 72)];
    const { entries } = toTimeline({ attempts, attemptDetails: [], durationMs: 100 });
    expect(entries.map(({ spans }) => spans.length)).toEqual([1, 1, 1]);
  });

  it("ends with the last attempt if that outlasts the request, and accepts a duration of 0", () => {
    const attempts = [attempt("cancelled", 10, 90)];
    expect(toTimeline({ attempts, attemptDetails: [], durationMs: 50 }).totalMs).toBe(100);
    expect(toTimeline({ attempts: [], attemptDetails: [], durationMs: 0 })).toEqual({ entries: [], totalMs: 1 });
  });
});

import { describe, expect, it } from "vitest";
import { addHistograms, countOf, LATENCY_BOUNDS_MS, percentileOf } from "../../src/ledger/latency-histogram.ts";
import { histogramOf } from "../support/histograms.ts";
import { SECONDS } from "../../src/telemetry/completion-metrics.ts";

describe("a histogram of latencies", () => {
  it("has the bounds of the metrics", () => {
    expect(LATENCY_BOUNDS_MS.map((boundMs) => boundMs / 1_000)).toEqual(SECONDS);
  });

  it("counts durations up to each bound, and longer ones apart", () => {
    const histogram = histogramOf([0, 50, 50.1, 300_000, 300_001, 10_000_000]);
    expect([histogram[0], histogram[1], histogram.at(-2), histogram.at(-1)]).toEqual([2, 1, 1, 2]);
    expect(countOf(histogram)).toBe(6);
    expect(countOf(addHistograms(histogram, histogramOf([75])))).toBe(7);
  });

  it.each([
    ["of one duration is within its bucket", [300], 50, 375],
    ["is spread evenly within a bucket", [300, 300, 300, 300], 95, 487.5],
    [
      "is in the bucket that holds it",
      [...Array.from({ length: 95 }, () => 40), 4_000, 4_000, 4_000, 4_000, 4_000],
      95,
      50,
    ],
    ["of long durations is the last bound", [400_000, 500_000], 95, 300_000],
  ])("estimates a percentile, which %s", (_, durations, percent, expected) => {
    expect(percentileOf(histogramOf(durations), percent)).toBeCloseTo(expected, 6);
  });
});

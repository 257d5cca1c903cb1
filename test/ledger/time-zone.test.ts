import { describe, expect, it } from "vitest";
import { dayStart, offsetsOf, startOfDay, UTC } from "../../src/ledger/time-zone.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const year = { sinceMs: Date.UTC(2026, 0, 1), untilMs: Date.UTC(2027, 0, 1) };

describe("the offsets of a time zone", () => {
  it("change when its clocks do", () => {
    expect(offsetsOf("Europe/Berlin", year)).toEqual([
      { fromMs: year.sinceMs, offsetMs: HOUR_MS },
      { fromMs: Date.UTC(2026, 2, 29, 1), offsetMs: 2 * HOUR_MS },
      { fromMs: Date.UTC(2026, 9, 25, 1), offsetMs: HOUR_MS },
    ]);
    expect(offsetsOf("America/New_York", { sinceMs: Date.UTC(2026, 2, 8, 5), untilMs: Date.UTC(2026, 2, 9) })).toEqual([
      { fromMs: Date.UTC(2026, 2, 8, 5), offsetMs: -5 * HOUR_MS },
      { fromMs: Date.UTC(2026, 2, 8, 7), offsetMs: -4 * HOUR_MS },
    ]);
    expect(offsetsOf("Asia/Kolkata", year)).toEqual([{ fromMs: year.sinceMs, offsetMs: 5.5 * HOUR_MS }]);
  });

  it("are unknown for a zone that does not exist", () => {
    expect(() => offsetsOf("Mars/Olympus", year)).toThrow(RangeError);
  });
});

describe("the start of a day", () => {
  it.each([
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
  ])("is when the date changes in %s", (zone) => {
    const offsets = offsetsOf(zone, year);
    const dates = new Intl.DateTimeFormat("en-CA", { timeZone: zone });
    for (let atMs = year.sinceMs + DAY_MS; atMs < year.untilMs; atMs += 11 * HOUR_MS) {
      const startMs = dayStart(atMs, offsets);
      expect([zone, dates.format(startMs)]).toEqual([zone, dates.format(atMs)]);
      expect([zone, dates.format(startMs - 1)]).not.toEqual([zone, dates.format(atMs)]);
    }
  });

  it("is midnight in UTC", () => {
    expect(startOfDay(Math.floor(year.sinceMs / DAY_MS), UTC)).toBe(year.sinceMs);
  });
});

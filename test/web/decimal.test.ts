import { describe, expect, it } from "vitest";
import { readDecimal, writeDecimal } from "../../web/format/decimal.ts";
import { formatMicroUsd, parseUsd, writeUsd } from "../../web/format/money.ts";
import { parseCount } from "../../web/format/number.ts";

describe("a number of a field", () => {
  it.each([
    ["en-US", "1,234,567.50", "1234567.50"],
    ["en-US", "25", "25"],
    ["en-US", "7.50", "7.50"],
    ["en-US", "1 200", "1200"],
    ["en-US", "7,50", undefined],
    ["en-US", "1,2345", undefined],
    ["en-US", "", undefined],
    ["en-US", "-5", undefined],
    ["en-IN", "12,34,567.5", "1234567.5"],
    ["de-DE", "1.234.567,50", "1234567.50"],
    ["de-DE", "7,50", "7.50"],
    // Cannot be thousands.
    ["de-DE", "7.50", "7.50"],
    ["de-DE", "1.500", "1500"],
    ["fr-FR", "1 234,5", "1234.5"],
    ["de-CH", "1’234.5", "1234.5"],
  ])("in %s is %s: %s", (locale, text, decimal) => {
    expect(readDecimal(text, locale)).toBe(decimal);
  });

  it.each(["en-US", "de-DE", "fr-FR", "ar-EG", "hi-IN"])(
    "that is written for a field in %s is read again",
    (locale) => {
      for (const decimal of ["7.5", "0.000001", "1234567.25", "1.125"])
        expect(readDecimal(writeDecimal(decimal, locale), locale)).toBe(decimal);
    },
  );
});

it("reads and writes amounts and counts in the locale of the program", () => {
  expect(parseUsd("$1,234.5")).toBe(1_234_500_000n);
  expect(parseUsd("7,50")).toBeUndefined();
  expect(parseUsd(writeUsd(7_500_000n))).toBe(7_500_000n);
  expect(formatMicroUsd(4_200n)).toBe("$0.0042");
  expect(formatMicroUsd(14_900n)).toBe("$0.015");
  expect(formatMicroUsd(50_000n)).toBe("$0.05");
  expect(formatMicroUsd(99_600n)).toBe("$0.10");
  expect(parseCount("1,200")).toBe(1_200n);
  expect(parseCount("1.5")).toBeUndefined();
});

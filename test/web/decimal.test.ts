import { describe, expect, it } from "vitest";
import { readDecimal, writeDecimal } from "../../web/format/decimal.ts";
import { formatBudget, formatMicroUsd, formatShareOfBudget, parseUsd, writeUsd } from "../../web/format/money.ts";
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

describe("the amounts of a budget", () => {
  it.each([
    ["a fraction of a cent", { spent: 150n, budget: 20_000n }, ["$0.00015", "$0.00000", "$0.02", "$0.01985"]],
    ["cents", { spent: 40_000n, budget: 2_500_000n }, ["$0.04", "$0.00", "$2.50", "$2.46"]],
    [
      "more than six digits show",
      { spent: 123_456_789n, budget: 200_000_000n },
      ["$123.46", "$0.00", "$200.00", "$76.54"],
    ],
    ["almost all of it", { spent: 1_999_600n, budget: 2_000_000n }, ["$1.9996", "$0.0000", "$2.00", "$0.0004"]],
    ["holds", { spent: 150n, held: 1_234n, budget: 20_000n }, ["$0.00015", "$0.00124", "$0.02", "$0.01861"]],
    ["nothing", { spent: 0n, budget: 20_000n }, ["$0.00", "$0.00", "$0.02", "$0.02"]],
    ["more than there is", { spent: 2_000_400n, budget: 2_000_000n }, ["$2.0004", "$0.0000", "$2.00", "$0.0000"]],
    ["a budget below a cent", { spent: 1n, budget: 5_000n }, ["$0.000001", "$0.000000", "$0.005", "$0.004999"]],
  ])("do not contradict each other: %s", (_, amounts, expected) => {
    const { spent, held, budget, left } = formatBudget(amounts);
    expect([spent, held, budget, left]).toEqual(expected);
  });

  it("are a whole share only when all is spent", () => {
    expect(formatShareOfBudget({ spent: 1_999_999n, budget: 2_000_000n })).toBe("99%");
    expect(formatShareOfBudget({ spent: 29n, budget: 100n })).toBe("29%");
    expect(formatShareOfBudget({ spent: 0n, budget: 0n })).toBe("100%");
  });
});

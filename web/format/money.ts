import { readDecimal, writeDecimal } from "./decimal.ts";
import { LOCALE } from "./locale.ts";
import { formatWholePercent } from "./number.ts";

/** US dollars in the reader's locale. */
const USD = { style: "currency", currency: "USD" } as const;
const WHOLE = new Intl.NumberFormat(LOCALE, { ...USD, minimumFractionDigits: 2 });
const FINE = new Intl.NumberFormat(LOCALE, { ...USD, minimumSignificantDigits: 1, maximumSignificantDigits: 2 });
const SHORT = new Intl.NumberFormat(LOCALE, {
  ...USD,
  notation: "compact",
  minimumSignificantDigits: 1,
  maximumSignificantDigits: 3,
});

/** Formats micro-USD: `$1,234.50`, and `$0.0042` below ten cents. */
export function formatMicroUsd(micro: bigint): string {
  const dollars = Number(micro) / 1e6;
  return dollars > 0 && dollars < 0.0995 ? FINE.format(dollars) : WHOLE.format(dollars);
}

/** Exactly, without zeros after the cents. */
const EXACT = new Intl.NumberFormat(LOCALE, { ...USD, minimumFractionDigits: 2, maximumFractionDigits: 6 });
/** By the number of digits after the point: a micro-USD has six. */
const FIXED = Array.from(
  { length: 7 },
  (_, digits) =>
    new Intl.NumberFormat(LOCALE, { ...USD, minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

interface BudgetAmounts {
  readonly spent: bigint;
  readonly held?: bigint;
  readonly budget: bigint;
}

/**
 * Formats micro-USD of one budget, which are shown side by side, with as many digits as the smallest part needs:
 * `$0.00015` of `$0.02`, `$0.01985` left. The budget is exact, what is taken is rounded up and what is left down, so that
 * a budget with something left never looks spent.
 */
export function formatBudget({ spent, held = 0n, budget }: BudgetAmounts) {
  const rest = budget - spent - held;
  const digits = Math.max(...[spent, held, rest < 0n ? -rest : rest].map(digitsOf));
  const step = 10n ** BigInt(6 - digits);
  const format = (micro: bigint): string => FIXED[digits]!.format(Number(micro * step) / 1e6);
  const taken = (micro: bigint): string => format((micro + step - 1n) / step);
  return {
    spent: taken(spent),
    held: taken(held),
    budget: EXACT.format(Number(budget) / 1e6),
    left: format((rest < 0n ? 0n : rest) / step),
  } as const;
}

/** Returns the digits after the point that show the amount exactly, or its first two digits. At least cents. */
function digitsOf(micro: bigint): number {
  return (
    [2, 3, 4, 5].find((digits) => {
      const step = 10n ** BigInt(6 - digits);
      return micro % step === 0n || micro >= 10n * step;
    }) ?? 6
  );
}

/** Formats the spent share of a budget in per cent, rounded down: `99%` of a budget with something left. */
export function formatShareOfBudget({ spent, budget }: BudgetAmounts): string {
  return formatWholePercent(budget === 0n ? 1 : Number((spent * 100n) / budget) / 100);
}

/** Formats micro-USD for an axis: `$1.2K`. */
export function formatShortUsd(micro: number): string {
  return SHORT.format(micro / 1e6);
}

/** Parses US dollars to micro-USD. Undefined for an invalid amount. */
export function parseUsd(text: string): bigint | undefined {
  const decimal = readDecimal(text.replace(/US\$|USD|\$/, ""));
  const [, whole, fraction = ""] = /^(\d{1,10})(?:\.(\d{1,6}))?$/.exec(decimal ?? "") ?? [];
  return whole === undefined ? undefined : BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}

/** Formats micro-USD as an amount that `parseUsd` accepts. */
export function writeUsd(micro: bigint): string {
  return writeDecimal((Number(micro) / 1e6).toFixed(6).replace(/\.?0{1,6}$/, ""));
}

import { type BudgetAmounts, budgetFormat } from "../../src/core/budget-amounts.ts";
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

/** Formats the amounts of one budget, which are shown side by side. */
export const formatBudget = budgetFormat(LOCALE);

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

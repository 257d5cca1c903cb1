import { readDecimal } from "./decimal.ts";
import { LOCALE } from "./locale.ts";

const COUNT = new Intl.NumberFormat(LOCALE);
const SHORT = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 1 });
const WHOLE_PERCENT = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 0 });

/** Formats a count: `1,234,567`. */
export function formatCount(count: bigint | number): string {
  return COUNT.format(count);
}

/** Formats a count in compact notation: `1.2M`. */
export function formatShort(count: bigint | number): string {
  return SHORT.format(count);
}

/** Formats a ratio: `12.5%`. */
export function formatPercent(ratio: number): string {
  return PERCENT.format(ratio);
}

/** Formats a ratio without a fraction: `80%`. */
export function formatWholePercent(ratio: number): string {
  return WHOLE_PERCENT.format(ratio);
}

/** Parses a whole number, with or without separators. Undefined for an invalid number. */
export function parseCount(text: string): bigint | undefined {
  const digits = readDecimal(text);
  return digits !== undefined && /^\d{1,18}$/.test(digits) ? BigInt(digits) : undefined;
}

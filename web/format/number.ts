const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Formats a count: `1,234,567`. */
export function formatCount(count: bigint | number): string {
  return COUNT.format(count);
}

/** Formats a count in compact notation: `1.2M`. */
export function formatShort(count: bigint | number): string {
  return SHORT.format(count);
}

/** Parses a whole number, with or without separators. Undefined for an invalid number. */
export function parseCount(text: string): bigint | undefined {
  const digits = text.replaceAll(/[\s,_]/g, "");
  return /^\d{1,18}$/.test(digits) ? BigInt(digits) : undefined;
}

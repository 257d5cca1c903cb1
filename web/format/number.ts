const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** `1,234,567`. */
export function formatCount(count: bigint | number): string {
  return COUNT.format(count);
}

/** `1.2M`, for where there is little room. */
export function formatShort(count: bigint | number): string {
  return SHORT.format(count);
}

/** A whole number as somebody wrote it, with or without separators; undefined for what is none. */
export function parseCount(text: string): bigint | undefined {
  const digits = text.replaceAll(/[\s,_]/g, "");
  return /^\d{1,18}$/.test(digits) ? BigInt(digits) : undefined;
}

const WHOLE = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", minimumFractionDigits: 2 });
const FINE = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  minimumSignificantDigits: 2,
  maximumSignificantDigits: 2,
});

/** Formats micro-USD: `$1,234.50`, and `$0.0042` below a cent. */
export function formatMicroUsd(micro: bigint): string {
  const dollars = Number(micro) / 1e6;
  return dollars > 0 && dollars < 0.01 ? FINE.format(dollars) : WHOLE.format(dollars);
}

/** Parses US dollars to micro-USD. Undefined for an invalid amount. */
export function parseUsd(text: string): bigint | undefined {
  const [, whole, fraction = ""] = /^\$?\s*(\d{1,10})(?:\.(\d{1,6}))?$/.exec(text.replaceAll(",", "")) ?? [];
  return whole === undefined ? undefined : BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}

/** Formats micro-USD as an amount that `parseUsd` accepts. */
export function writeUsd(micro: bigint): string {
  return (Number(micro) / 1e6).toFixed(6).replace(/\.?0{1,6}$/, "");
}

import { LOCALE } from "./locale.ts";

const WHOLE = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Formats milliseconds: `320 ms`, `1.2 s`, `2 min 5 s`, `15 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${WHOLE.format(ms)} ms`;
  if (ms < 60_000) return `${FINE.format(ms / 1_000)} s`;
  const seconds = Math.round(ms / 1_000);
  const rest = seconds % 60;
  return `${WHOLE.format(Math.floor(seconds / 60))} min${rest === 0 ? "" : ` ${rest} s`}`;
}

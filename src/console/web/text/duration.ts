const FINE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** How long something took: `850 ms`, `1.25 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${FINE.format(ms < 10 ? ms : Math.round(ms))} ms`;
  if (ms < 59_950) return `${FINE.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  const rest = seconds % 60;
  return `${Math.floor(seconds / 60)} min${rest === 0 ? "" : ` ${rest} s`}`;
}

const UNITS = [
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** Milliseconds as people say them: `340 ms`, `1.25 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1_000).toPrecision(3))} s`;
  let seconds = Math.round(ms / 1_000);
  const parts = UNITS.flatMap(([name, length]) => {
    const count = Math.floor(seconds / length);
    seconds -= count * length;
    return count === 0 ? [] : [`${count} ${name}`];
  });
  return parts.slice(0, 2).join(" ");
}

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;

const MAX_MS = 10 * 366 * UNITS_MS.d;

/** Reads `90m`, `12h`, `30d` or `4w` as milliseconds: more than nothing, at most ten years. Undefined for all else. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,7})([mhdw])$/.exec(text);
  if (match === null) return undefined;
  const durationMs = Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
  return durationMs > 0 && durationMs <= MAX_MS ? durationMs : undefined;
}

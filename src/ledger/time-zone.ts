/** An offset from UTC, from a time on; both in milliseconds. */
interface ZoneOffset {
  readonly fromMs: number;
  readonly offsetMs: number;
}

/** The offsets of a time zone within a time range, oldest first; the first one also counts before it. */
export type ZoneOffsets = readonly [ZoneOffset, ...ZoneOffset[]];

export const UTC: ZoneOffsets = [{ fromMs: 0, offsetMs: 0 }];

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * The offsets of an IANA time zone, such as `Europe/Berlin`, between two times at most two years apart. Throws a RangeError for an
 * unknown zone.
 */
export function offsetsOf(zone: string, span: { readonly sinceMs: number; readonly untilMs: number }): ZoneOffsets {
  const offsetAt = offsetReader(zone);
  const offsets: [ZoneOffset, ...ZoneOffset[]] = [{ fromMs: span.sinceMs, offsetMs: offsetAt(span.sinceMs) }];
  for (let atMs = span.sinceMs; atMs < span.untilMs; atMs += DAY_MS) {
    const [earlier, later] = [offsets.at(-1)!.offsetMs, offsetAt(atMs + DAY_MS)];
    if (earlier === later) continue;
    offsets.push({ fromMs: changeAfter(atMs, (timeMs) => offsetAt(timeMs) === later), offsetMs: later });
  }
  return offsets;
}

/** The first minute in the day after `atMs` for which `isChanged` is true. */
function changeAfter(atMs: number, isChanged: (timeMs: number) => boolean): number {
  let [before, after] = [Math.floor(atMs / MINUTE_MS), Math.ceil((atMs + DAY_MS) / MINUTE_MS)];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (isChanged(middle * MINUTE_MS)) after = middle;
    else before = middle;
  }
  return after * MINUTE_MS;
}

function offsetReader(zone: string): (atMs: number) => number {
  const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  return (atMs) => {
    const name = format.formatToParts(atMs).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours = 0, minutes = 0] = /([+-])(\d\d):(\d\d)/.exec(name) ?? [];
    const offsetMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
    return sign === "-" ? -offsetMs : offsetMs;
  };
}

/** Start of the day that a time belongs to, in Unix milliseconds. */
export function dayStart(atMs: number, offsets: ZoneOffsets): number {
  const { offsetMs } = offsets.findLast(({ fromMs }) => fromMs <= atMs) ?? offsets[0];
  return startOfDay(Math.floor((atMs + offsetMs) / DAY_MS), offsets);
}

/** Start of a day, given as its number since 1 January 1970 in the zone, in Unix milliseconds. */
export function startOfDay(day: number, offsets: ZoneOffsets): number {
  const midnightMs = day * DAY_MS;
  for (const [index, { fromMs, offsetMs }] of offsets.entries()) {
    const atMs = midnightMs - offsetMs;
    const isAfter = atMs >= (offsets[index + 1]?.fromMs ?? Infinity);
    if (isAfter) continue;
    // If clocks are put forward at midnight, that day has no midnight and begins at the change.
    return index === 0 ? atMs : Math.max(atMs, fromMs);
  }
  return midnightMs;
}

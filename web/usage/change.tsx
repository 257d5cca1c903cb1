import type { ReactNode } from "react";
import type { UsageSums } from "../../gen/parley/console/v1/usage_pb.js";
import { LOCALE } from "../format/locale.ts";
import { formatWholePercent } from "../format/number.ts";
import { errorsOf, requestsOf } from "./measures.ts";

const POINTS = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });

/** Direction and amount of a change since the previous period. */
export interface Change {
  readonly direction: "up" | "down" | "none";
  readonly text: string;
}

export const UNKNOWN: Change = { direction: "none", text: "–" };
const NOTHING_BEFORE: Change = { direction: "none", text: "No data before" };

const ARROWS = { up: "▲", down: "▼" } as const;
const WORDS = { up: "higher", down: "lower" } as const;

/** A change with its arrow, and `children` after one that has a direction. */
export function ChangeText({
  change: { direction, text },
  children,
}: {
  readonly change: Change;
  readonly children?: ReactNode;
}) {
  if (direction === "none") return text;
  return (
    <>
      <span aria-hidden>{ARROWS[direction]} </span>
      {text}
      <span className="sr-only"> {WORDS[direction]}</span>
      {children}
    </>
  );
}

/** Returns a change in words: `12% higher`. */
export function describeChange({ direction, text }: Change): string {
  return direction === "none" ? text : `${text} ${WORDS[direction]}`;
}

/** Returns the relative change. */
export function changeOf(now: number, before: number): Change {
  if (now === before) return { direction: "none", text: now === 0 ? "–" : "No change" };
  if (before === 0) return NOTHING_BEFORE;
  const ratio = now / before - 1;
  if (Math.abs(ratio) < 0.005) return { direction: "none", text: "No change" };
  const text = Math.abs(ratio) >= 10 ? `${POINTS.format(now / before)}×` : formatWholePercent(Math.abs(ratio));
  return { direction: ratio > 0 ? "up" : "down", text };
}

/** Returns the change of the error rate in percentage points. */
export function pointsOf(now: UsageSums, before: UsageSums): Change {
  if (requestsOf(before) === 0n) return requestsOf(now) === 0n ? UNKNOWN : NOTHING_BEFORE;
  const points = (failedShare(now) - failedShare(before)) * 100;
  if (Math.abs(points) < 0.05) return { direction: "none", text: "No change" };
  return { direction: points > 0 ? "up" : "down", text: `${POINTS.format(Math.abs(points))} points` };
}

/** Returns the error rate: the share of failed and refused requests. */
export function failedShare(sums: UsageSums): number {
  return requestsOf(sums) === 0n ? 0 : Number(errorsOf(sums)) / Number(requestsOf(sums));
}

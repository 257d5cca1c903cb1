import type { UsageSums } from "../../gen/parley/console/v1/usage_pb.js";
import { formatMicroUsd } from "../format/money.ts";
import { LOCALE } from "../format/locale.ts";
import { formatCount, formatPercent, formatShort, formatWholePercent } from "../format/number.ts";
import { errorsOf, requestsOf, tokensOf } from "./measures.ts";

const POINTS = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });

interface FiguresProps {
  readonly now: UsageSums;
  /** Sums of the previous period of the same length; undefined when they are not known. */
  readonly before: UsageSums | undefined;
  /** Length of the period: `30 days`. */
  readonly length: string;
}

/** The four key figures of a period, with their change since the previous period. */
export function Figures({ now, before, length }: FiguresProps) {
  const change = (of: (sums: UsageSums) => bigint): Change =>
    before === undefined ? UNKNOWN : changeOf(Number(of(now)), Number(of(before)));
  return (
    <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Figure
        name="Requests"
        value={formatCount(requestsOf(now))}
        note={now.refused > 0n ? `${formatCount(now.refused)} refused` : undefined}
        change={change(requestsOf)}
        length={length}
      />
      <Figure
        name="Tokens"
        value={formatShort(tokensOf(now))}
        title={formatCount(tokensOf(now))}
        change={change(tokensOf)}
        length={length}
      />
      <Figure
        name="Cost"
        value={formatMicroUsd(now.costMicroUsd)}
        note={
          now.ownCostMicroUsd > 0n ? `${formatMicroUsd(now.ownCostMicroUsd)} with accounts’ own credentials` : undefined
        }
        change={change((sums) => sums.costMicroUsd)}
        length={length}
      />
      <Figure
        name="Error rate"
        value={formatPercent(failedShare(now))}
        title={formatCount(errorsOf(now))}
        change={before === undefined ? UNKNOWN : pointsOf(now, before)}
        length={length}
        isFailure
      />
    </dl>
  );
}

/** Direction and amount of a change. */
interface Change {
  readonly direction: "up" | "down" | "none";
  readonly text: string;
}

const UNKNOWN: Change = { direction: "none", text: "–" };
const NOTHING_BEFORE: Change = { direction: "none", text: "No data before" };

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly title?: string;
  readonly note?: string | undefined;
  readonly change: Change;
  readonly length: string;
  readonly isFailure?: boolean;
}

const ARROWS = { up: "▲", down: "▼", none: "" } as const;
const WORDS = { up: "higher", down: "lower" } as const;

function Figure({ name, value, title, note, change: { direction, text }, length, isFailure = false }: FigureProps) {
  const colour = !isFailure || direction === "none" ? "text-muted" : direction === "up" ? "text-danger" : "text-good";
  return (
    <div className="rounded-xl border border-line bg-surface p-4 sm:p-5">
      <dt className="text-sm text-muted">{name}</dt>
      <dd className="mt-1 text-2xl font-semibold tracking-tight tabular-nums" title={title}>
        {value}
      </dd>
      {note !== undefined && <dd className="mt-1 text-sm text-muted">{note}</dd>}
      <dd className={`mt-1 text-sm ${colour}`}>
        {direction !== "none" && <span aria-hidden>{ARROWS[direction]} </span>}
        {text}
        {direction === "none" ? (
          ""
        ) : (
          <>
            <span className="sr-only"> {WORDS[direction]}</span>
            <span className="text-muted"> vs previous {length}</span>
          </>
        )}
      </dd>
    </div>
  );
}

/** Returns the relative change. */
function changeOf(now: number, before: number): Change {
  if (now === before) return { direction: "none", text: now === 0 ? "–" : "No change" };
  if (before === 0) return NOTHING_BEFORE;
  const ratio = now / before - 1;
  if (Math.abs(ratio) < 0.005) return { direction: "none", text: "No change" };
  const text = Math.abs(ratio) >= 10 ? `${POINTS.format(now / before)}×` : formatWholePercent(Math.abs(ratio));
  return { direction: ratio > 0 ? "up" : "down", text };
}

/** Returns the change of the error rate in percentage points. */
function pointsOf(now: UsageSums, before: UsageSums): Change {
  if (requestsOf(before) === 0n) return requestsOf(now) === 0n ? UNKNOWN : NOTHING_BEFORE;
  const points = (failedShare(now) - failedShare(before)) * 100;
  if (Math.abs(points) < 0.05) return { direction: "none", text: "No change" };
  return { direction: points > 0 ? "up" : "down", text: `${POINTS.format(Math.abs(points))} points` };
}

function failedShare(sums: UsageSums): number {
  return requestsOf(sums) === 0n ? 0 : Number(errorsOf(sums)) / Number(requestsOf(sums));
}

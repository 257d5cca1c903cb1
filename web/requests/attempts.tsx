import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import { formatDuration } from "../format/duration.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { outcomeOf } from "../format/outcomes.ts";

/** Bars have the colours of the badges. */
const BARS = { good: "bg-good", warn: "bg-warn", danger: "bg-danger", plain: "bg-edge" } as const;

/** The attempts in their order, each with its place in the request's time. */
export function Attempts({ request: { attempts, durationMs, firstContentMs } }: { readonly request: LoggedRequest }) {
  const triedMs = attempts.reduce((sum, attempt) => sum + attempt.durationMs, 0);
  const totalMs = Math.max(durationMs, triedMs, 1);
  const begins = attempts.map((_, index) => attempts.slice(0, index).reduce((sum, each) => sum + each.durationMs, 0));
  return (
    <>
      <ol className="space-y-4">
        {attempts.map((attempt, index) => (
          // An attempt has no name of its own, and the list never changes.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={index}>
            <AttemptItem
              attempt={attempt}
              from={begins[index]! / totalMs}
              to={(begins[index]! + attempt.durationMs) / totalMs}
            />
          </li>
        ))}
      </ol>
      <p className="mt-4 flex flex-wrap justify-between gap-x-4 border-t border-line pt-2 text-xs text-muted tabular-nums">
        <span aria-hidden>0 ms</span>
        {firstContentMs !== undefined && <span>First content after {formatDuration(firstContentMs)}</span>}
        <span>{formatDuration(durationMs)} in all</span>
      </p>
    </>
  );
}

interface AttemptItemProps {
  readonly attempt: Attempt;
  /** Where its bar begins and ends, from 0 to 1. */
  readonly from: number;
  readonly to: number;
}

function AttemptItem({ attempt, from, to }: AttemptItemProps) {
  const { model, outcome, upstreamStatus, reason, durationMs } = attempt;
  const isSkipped = outcome === "skipped";
  return (
    <>
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1 text-sm">
        <p className="flex min-w-0 flex-wrap items-baseline gap-x-3 gap-y-1">
          <bdi className="font-medium wrap-anywhere">{model}</bdi>
          <OutcomeBadge code={outcome} />
        </p>
        {!isSkipped && (
          <p className="text-muted tabular-nums">
            {upstreamStatus !== undefined && `Status ${upstreamStatus} · `}
            {formatDuration(durationMs)}
          </p>
        )}
      </div>
      <div className="mt-1.5 h-2 overflow-hidden rounded-full bg-sunken" aria-hidden>
        {!isSkipped && (
          <div
            className={`h-full min-w-1 rounded-full ${BARS[outcomeOf(outcome).look]}`}
            style={{ marginLeft: `${Math.min(from, 0.99) * 100}%`, width: `${(to - from) * 100}%` }}
          />
        )}
      </div>
      {reason !== "" && (
        <p className="mt-1.5 text-sm wrap-anywhere text-muted">
          <bdi>{reason}</bdi>
        </p>
      )}
    </>
  );
}

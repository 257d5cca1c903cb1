import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { formatDuration } from "../format/duration.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { outcomeOf } from "../format/outcomes.ts";
import { type TimelineEntry, toTimeline } from "./timeline.ts";

/** Colours of the bars, the same as of the badges. */
const BARS = { good: "bg-good", warn: "bg-warn", danger: "bg-danger", plain: "bg-edge" } as const;

/** The attempts of a request in order, on a common time axis. */
export function Attempts({ request }: { readonly request: LoggedRequest }) {
  const { entries, firstToken } = toTimeline(request);
  const { durationMs, firstContentMs } = request;
  return (
    <>
      <ol className="space-y-4">
        {entries.map((entry, index) => (
          // Attempts have no ID, and the list is static.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={index}>
            <AttemptItem entry={entry} firstToken={index === entries.length - 1 ? firstToken : undefined} />
          </li>
        ))}
      </ol>
      <p className="mt-4 flex flex-wrap justify-between gap-x-4 border-t border-line pt-2 text-xs text-muted tabular-nums">
        <span aria-hidden>0 ms</span>
        {firstContentMs !== undefined && <span>First token after {formatDuration(firstContentMs)}</span>}
        <span>{formatDuration(durationMs)} total</span>
      </p>
    </>
  );
}

interface AttemptItemProps {
  readonly entry: TimelineEntry;
  /** Position of the first token, from 0 to 1. */
  readonly firstToken: number | undefined;
}

function AttemptItem({ entry: { attempt, from, to, wait }, firstToken }: AttemptItemProps) {
  const { model, code, httpStatusCode, message, ownCredential, startMs, durationMs } = attempt;
  const isSkipped = code === "skipped";
  return (
    <>
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1 text-sm">
        <p className="flex min-w-0 flex-wrap items-baseline gap-x-3 gap-y-1">
          <bdi className="font-medium wrap-anywhere">{model}</bdi>
          <OutcomeBadge code={code} />
          {ownCredential && <span className="text-muted">own credential</span>}
        </p>
        {!isSkipped && (
          <p className="text-muted tabular-nums">
            {httpStatusCode !== undefined && `HTTP ${httpStatusCode} · `}
            {wait !== undefined && `waited ${formatDuration(wait.ms)} · `}
            started at {formatDuration(startMs)} · took {formatDuration(durationMs)}
          </p>
        )}
      </div>
      <div className="relative mt-1.5 h-2 overflow-hidden rounded-full bg-sunken" aria-hidden>
        {wait !== undefined && (
          <div
            className="absolute inset-y-0 my-auto h-0.5 bg-edge"
            style={{ left: `${wait.from * 100}%`, width: `${(from - wait.from) * 100}%` }}
          />
        )}
        {!isSkipped && (
          <div
            className={`absolute inset-y-0 min-w-1 rounded-full ${BARS[outcomeOf(code).look]}`}
            style={{ left: `${Math.min(from, 0.99) * 100}%`, width: `${(to - from) * 100}%` }}
          />
        )}
        {firstToken !== undefined && (
          <div className="absolute inset-y-0 w-0.5 bg-surface" style={{ left: `${firstToken * 100}%` }} />
        )}
      </div>
      {message !== "" && (
        <p className="mt-1.5 text-sm wrap-anywhere text-muted">
          <bdi>{message}</bdi>
        </p>
      )}
    </>
  );
}

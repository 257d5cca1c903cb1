import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { formatDuration } from "../format/duration.ts";
import { outcomeOf } from "../format/outcomes.ts";
import { type Phase, type Span, type TimelineEntry, toTimeline } from "./timeline.ts";

/** Names and colours of the phases, in their order. */
const PHASES: Readonly<Record<Exclude<Phase, "whole">, { readonly name: string; readonly look: string }>> = {
  backoff: {
    name: "Backoff",
    look: "bg-[repeating-linear-gradient(90deg,var(--color-edge)_0_2px,transparent_2px_5px)]",
  },
  connect: { name: "Connect and send", look: "bg-chart-2" },
  wait: { name: "Wait for response", look: "bg-chart-1" },
  think: { name: "To first token", look: "bg-chart-4" },
  receive: { name: "Receive", look: "bg-chart-5" },
};

/** Colours of attempts whose phases are not known, the same as of the badges. */
const WHOLE = { good: "bg-good", warn: "bg-warn", danger: "bg-danger", plain: "bg-edge" } as const;

const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;

/** The attempts of a request in order, on a common time axis. */
export function Attempts({ request }: { readonly request: LoggedRequest }) {
  const { entries, totalMs } = toTimeline(request);
  const { durationMs, firstContentMs } = request;
  const shown = new Set(entries.flatMap(({ spans }) => spans.map(({ phase }) => phase)));
  return (
    <>
      <div aria-hidden className="relative mb-1 h-4 text-xs text-muted tabular-nums">
        {TICKS.map((tick) => (
          <span
            key={tick}
            className={`absolute whitespace-nowrap ${tick === 0 ? "" : tick === 1 ? "-translate-x-full" : "-translate-x-1/2"} ${tick % 0.5 === 0 ? "" : "max-sm:hidden"}`}
            style={{ left: `${tick * 100}%` }}
          >
            {formatDuration(tick * totalMs)}
          </span>
        ))}
      </div>
      <ol className="space-y-4 border-t border-line pt-3">
        {entries.map((entry, index) => (
          // Attempts have no ID, and the list is static.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={index}>
            <AttemptItem entry={entry} totalMs={totalMs} />
          </li>
        ))}
      </ol>
      <div className="mt-4 flex flex-wrap justify-between gap-x-4 gap-y-2 border-t border-line pt-2 text-xs text-muted tabular-nums">
        <p className="flex flex-wrap gap-x-4 gap-y-1">
          {Object.entries(PHASES)
            .filter(([phase]) => shown.has(phase as Phase))
            .map(([phase, { name, look }]) => (
              <span key={phase} className="flex items-center gap-1.5">
                <span aria-hidden className={`h-2 w-3 rounded-xs ${look}`} />
                {name}
              </span>
            ))}
        </p>
        <p className="flex gap-x-4">
          {firstContentMs !== undefined && <span>First token after {formatDuration(firstContentMs)}</span>}
          <span>{formatDuration(durationMs)} total</span>
        </p>
      </div>
    </>
  );
}

interface AttemptItemProps {
  readonly entry: TimelineEntry;
  readonly totalMs: number;
}

function AttemptItem({ entry: { attempt, providerError, spans }, totalMs }: AttemptItemProps) {
  const { model, code, httpStatusCode, message, ownCredential, startMs, durationMs } = attempt;
  const isSkipped = code === "skipped";
  const backoff = spans.find(({ phase }) => phase === "backoff");
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
            {backoff !== undefined && `waited ${formatDuration(backoff.toMs - backoff.fromMs)} · `}
            started at {formatDuration(startMs)} · took {formatDuration(durationMs)}
          </p>
        )}
      </div>
      {!isSkipped && (
        <>
          <div className="relative mt-1.5 h-2.5 overflow-hidden rounded-sm bg-sunken" aria-hidden>
            {spans.map((span) => (
              <Bar key={span.phase} span={span} totalMs={totalMs} whole={WHOLE[outcomeOf(code).look]} />
            ))}
          </div>
          <p className="mt-1 text-xs text-muted tabular-nums">{describePhases(spans)}</p>
        </>
      )}
      {message !== "" && (
        <p className="mt-1.5 text-sm wrap-anywhere text-muted">
          <bdi>{message}</bdi>
        </p>
      )}
      {providerError !== "" && (
        <div className="mt-1.5 text-sm">
          <p className="text-muted">Error of the provider or the connection, for administrators only:</p>
          <p className="mt-1 rounded-lg bg-sunken px-3 py-2 font-mono text-xs wrap-anywhere whitespace-pre-wrap">
            <bdi>{providerError}</bdi>
          </p>
        </div>
      )}
    </>
  );
}

function Bar({ span: { phase, fromMs, toMs }, totalMs, whole }: { span: Span; totalMs: number; whole: string }) {
  const look = phase === "whole" ? whole : PHASES[phase].look;
  return (
    <div
      className={`absolute inset-y-0 min-w-0.5 ${phase === "backoff" ? "my-auto h-1" : ""} ${look}`}
      style={{ left: `${Math.min(fromMs / totalMs, 0.995) * 100}%`, width: `${((toMs - fromMs) / totalMs) * 100}%` }}
    />
  );
}

/** The phases of an attempt with their lengths: `Connect and send 12 ms · Wait for response 310 ms`. */
function describePhases(spans: readonly Span[]): string {
  return spans
    .flatMap(({ phase, fromMs, toMs }) =>
      phase === "whole" || phase === "backoff" ? [] : `${PHASES[phase].name} ${formatDuration(toMs - fromMs)}`,
    )
    .join(" · ");
}

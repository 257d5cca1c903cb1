import type { ReactNode } from "react";
import { Link } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { noteRequest } from "../api/requests.ts";
import { requestPath } from "../paths.ts";
import { keyLabel } from "../format/callers.ts";
import { formatDuration } from "../format/duration.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatShort } from "../format/number.ts";
import { formatClock, formatPreciseMoment } from "../format/time.ts";
import { ENTRANCES } from "./entrances.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { None } from "../components/table.tsx";

/** Grid columns on wide screens, where a request is one line. On phones each request is a card. */
const GRID =
  "grid gap-x-4 lg:gap-x-3 lg:grid-cols-[8.5rem_minmax(0,1.6fr)_minmax(0,1fr)_11rem_5.5rem_4.75rem_4.25rem_4.25rem] lg:items-center lg:gap-y-0";

const COLUMNS = ["Time", "Model", "Key", "Status", "Tokens", "Cost", "Duration", "TTFT"] as const;

/** Column headers. On phones only for screen readers. */
export function LogHead() {
  return (
    <div role="rowgroup" className="max-lg:sr-only">
      <div role="row" className={`${GRID} border-b border-line px-5 py-2 font-medium text-muted`}>
        {COLUMNS.map((column, index) => (
          <span key={column} role="columnheader" className={index > 3 ? "text-right" : ""}>
            {column === "TTFT" ? <abbr title="Time to first token">{column}</abbr> : column}
          </span>
        ))}
      </div>
    </div>
  );
}

interface LogRowProps {
  readonly request: LoggedRequest;
  /** Name of the account, if it is another than the signed-in one. */
  readonly owner: string | undefined;
}

/** One request in the log. The whole row links to its page. */
export function LogRow({ request, owner }: LogRowProps) {
  const { endTime, outcome, refused, durationMs, firstContentMs } = request;
  const { clock, day } = endTime === undefined ? { clock: "–", day: undefined } : formatClock(endTime);
  const isFree = request.promptTokens === 0n && request.completionTokens === 0n && request.costMicroUsd === 0n;
  const mark = refused ? "shadow-[inset_3px_0_0_var(--color-warn)]" : "";
  return (
    <div
      role="row"
      className={`relative grid-cols-[minmax(0,1fr)_auto_auto] gap-y-1 px-5 py-3 tabular-nums lg:h-7.5 lg:py-0 hover:bg-sunken has-focus-visible:bg-sunken ${GRID} ${mark}`}
    >
      <Cell className="order-3 text-muted lg:order-none">
        <Link
          href={requestPath(request.id)}
          onClick={() => noteRequest(request)}
          className="whitespace-nowrap after:absolute after:inset-0 lg:font-medium lg:text-ink"
          title={endTime && formatPreciseMoment(endTime)}
        >
          {clock}
        </Link>
        {day !== undefined && <span className="ml-2 text-xs whitespace-nowrap text-muted">{day}</span>}
      </Cell>
      <Cell className="order-1 lg:order-none">
        <Model request={request} />
      </Cell>
      {/* Limited width, so that a long name leaves room for the model on phones. */}
      <Cell className="order-4 col-span-2 max-w-[45vw] justify-self-end text-right text-muted lg:order-none lg:col-span-1 lg:max-w-none lg:justify-self-auto lg:text-left lg:text-ink">
        <span className="lg:flex lg:items-baseline lg:gap-2" title={keyLabel(request)}>
          <bdi className="line-clamp-2 lg:line-clamp-1">{keyLabel(request)}</bdi>
          {owner !== undefined && (
            <span className="line-clamp-1 text-xs text-muted">
              of <bdi>{owner}</bdi>
            </span>
          )}
        </span>
      </Cell>
      <Cell className="order-2 col-span-2 text-right lg:order-none lg:col-span-1 lg:text-left">
        <OutcomeBadge code={outcome} refused={refused} />
      </Cell>
      <Cell className="order-6 text-right whitespace-nowrap text-muted lg:order-none lg:text-ink">
        {isFree ? <None /> : <Tokens request={request} />}
      </Cell>
      <Cell className="order-7 text-right whitespace-nowrap text-muted lg:order-none lg:text-ink">
        {isFree ? <None /> : formatMicroUsd(request.costMicroUsd)}
      </Cell>
      <Cell className="order-5 text-muted lg:order-none lg:text-right lg:text-ink">{formatDuration(durationMs)}</Cell>
      <Cell className="order-8 text-right whitespace-nowrap text-muted lg:order-none">
        {firstContentMs === undefined ? (
          <None />
        ) : (
          <>
            <span className="sr-only">time to first token </span>
            <span aria-hidden className="lg:hidden">
              TTFT{" "}
            </span>
            {formatDuration(firstContentMs)}
          </>
        )}
      </Cell>
    </div>
  );
}

function Cell({ className, children }: { readonly className: string; readonly children: ReactNode }) {
  return (
    <div role="cell" className={`min-w-0 wrap-anywhere ${className}`}>
      {children}
    </div>
  );
}

/** The model that served the request, the requested one if it was another, and the endpoint. */
function Model({ request }: { readonly request: LoggedRequest }) {
  const { requestedModel, servedModel, entrance, streamed, attempts } = request;
  const isOther = servedModel !== "" && servedModel !== requestedModel;
  // A name with several models is never tried itself.
  const isFallback = isOther && attempts.some(({ model }) => model === requestedModel);
  const name = servedModel || requestedModel || "Unknown";
  return (
    <span className="lg:flex lg:items-baseline lg:gap-2" title={name}>
      <bdi className="line-clamp-2 font-medium lg:line-clamp-1 lg:max-w-full lg:shrink-0">{name}</bdi>
      {isFallback && (
        <span className="line-clamp-2 text-xs text-warn lg:line-clamp-1">
          <span aria-hidden>↪ </span>fallback for <bdi>{requestedModel}</bdi>
        </span>
      )}
      {isOther && !isFallback && (
        <span className="line-clamp-2 text-xs text-muted lg:line-clamp-1">
          asked for <bdi>{requestedModel}</bdi>
        </span>
      )}
      <span className="text-xs text-muted max-lg:block lg:line-clamp-1">
        {ENTRANCES[entrance] ?? entrance}
        {streamed && ", streamed"}
      </span>
    </span>
  );
}

function Tokens({ request: { promptTokens, completionTokens } }: { readonly request: LoggedRequest }) {
  return (
    <>
      {formatShort(promptTokens)}
      <span aria-hidden> → </span>
      <span className="sr-only"> input, </span>
      {formatShort(completionTokens)}
      <span className="sr-only"> output</span>
    </>
  );
}

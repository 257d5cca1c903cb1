import type { ReactNode } from "react";
import { Link } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { noteRequest } from "../api/requests.ts";
import { requestPath } from "../paths.ts";
import { formatDuration } from "../format/duration.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatShort } from "../format/number.ts";
import { formatClock, formatPreciseMoment } from "../format/time.ts";
import { ENTRANCES } from "./entrances.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";

/** Grid columns on wide screens. On phones each request is a card. */
const GRID =
  "grid gap-x-4 lg:grid-cols-[5.5rem_minmax(0,1.4fr)_minmax(0,1fr)_10.5rem_5.5rem_5rem_5rem] lg:items-baseline lg:gap-y-0";

const COLUMNS = ["Time", "Model", "Key", "Status", "Tokens", "Cost", "Duration"] as const;

/** Column headers. On phones only for screen readers. */
export function LogHead() {
  return (
    <div role="rowgroup" className="max-lg:sr-only">
      <div role="row" className={`${GRID} border-b border-line px-5 py-3 font-medium text-muted`}>
        {COLUMNS.map((column, index) => (
          <span key={column} role="columnheader" className={index > 3 ? "text-right" : ""}>
            {column}
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
  const { endTime, keyName, keyId, outcome, refused, durationMs, firstContentMs } = request;
  const { clock, day } = endTime === undefined ? { clock: "–", day: undefined } : formatClock(endTime);
  const isFree = request.promptTokens === 0n && request.completionTokens === 0n && request.costMicroUsd === 0n;
  const mark = refused ? "shadow-[inset_3px_0_0_var(--color-warn)]" : "";
  return (
    <div
      role="row"
      className={`relative grid-cols-[minmax(0,1fr)_auto_auto] gap-y-1 px-5 py-3 tabular-nums hover:bg-sunken has-focus-visible:bg-sunken ${GRID} ${mark}`}
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
        {day !== undefined && <span className="text-xs text-muted max-lg:ml-2 lg:block">{day}</span>}
      </Cell>
      <Cell className="order-1 lg:order-none">
        <Model request={request} />
      </Cell>
      {/* Limited width, so that a long name leaves room for the model on phones. */}
      <Cell className="order-4 col-span-2 max-w-[45vw] justify-self-end text-right text-muted lg:order-none lg:col-span-1 lg:max-w-none lg:justify-self-auto lg:text-left lg:text-ink">
        <bdi className="line-clamp-2">{keyName || keyId}</bdi>
        {owner !== undefined && (
          <span className="line-clamp-1 text-xs text-muted">
            of <bdi>{owner}</bdi>
          </span>
        )}
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
      <Cell className="order-5 text-muted lg:order-none lg:text-right lg:text-ink">
        {formatDuration(durationMs)}
        {firstContentMs !== undefined && (
          <span className="text-xs whitespace-nowrap text-muted max-lg:before:content-['_·_'] lg:block">
            <span aria-hidden>TTFT </span>
            <span className="sr-only">time to first token </span>
            {formatDuration(firstContentMs)}
          </span>
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
  return (
    <>
      <bdi className="line-clamp-2 font-medium">{servedModel || requestedModel || "Unknown"}</bdi>
      {isFallback && (
        <span className="line-clamp-2 text-xs text-warn">
          <span aria-hidden>↪ </span>fallback for <bdi>{requestedModel}</bdi>
        </span>
      )}
      {isOther && !isFallback && (
        <span className="line-clamp-2 text-xs text-muted">
          asked for <bdi>{requestedModel}</bdi>
        </span>
      )}
      <span className="block text-xs text-muted">
        {ENTRANCES[entrance] ?? entrance}
        {streamed && ", streamed"}
      </span>
    </>
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

function None() {
  return (
    <>
      <span aria-hidden>–</span>
      <span className="sr-only">None</span>
    </>
  );
}

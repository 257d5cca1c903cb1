import type { ReactNode } from "react";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { None } from "../components/table.tsx";
import { keyLabel } from "../format/callers.ts";
import { formatDuration } from "../format/duration.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount, formatShort } from "../format/number.ts";
import { outcomeOf } from "../format/outcomes.ts";
import { formatClock, formatPreciseMoment } from "../format/time.ts";
import type { Order } from "./filter.ts";
import { describeEndpoint } from "./entrances.ts";
import { describeFinish, tokensPerSecond } from "./measures.ts";
import { ModelCell } from "./model-cell.tsx";

/** A request with the facts that its row shows. */
export interface RowFacts {
  readonly request: LoggedRequest;
  /** Name of the account, if it is another than the signed-in one. */
  readonly owner: string | undefined;
}

/**
 * A column of the log. On phones, where a request is a card, `phone` has the classes that place its cell; without
 * `phone` the cell is not shown.
 */
interface ColumnFacts {
  readonly name: string;
  /** Full form of an abbreviated name. */
  readonly title?: string;
  /** Width as a track of a grid, and how far it shrinks before the table scrolls, in rem. */
  readonly track: string;
  readonly minRem: number;
  readonly isRight?: true;
  /** Sort order of a click on its name. Default: not sortable. */
  readonly order?: Order;
  /** Shown until the reader chooses columns. */
  readonly isUsual?: true;
  readonly phone?: string;
  readonly cell: (facts: RowFacts) => ReactNode;
}

const count = (value: bigint): ReactNode => (value === 0n ? <None /> : formatCount(value));
const hasUsage = ({ promptTokens, completionTokens, costMicroUsd }: LoggedRequest): boolean =>
  promptTokens > 0n || completionTokens > 0n || costMicroUsd > 0n;

/** All columns, in their order. The first two are always shown. */
const COLUMNS = {
  time: {
    name: "Time",
    track: "minmax(8.25rem, 8.5rem)",
    minRem: 8.25,
    order: "time",
    isUsual: true,
    phone: "order-3 text-muted max-lg:text-xs lg:font-medium lg:text-ink",
    cell: ({ request: { endTime } }) => {
      const { clock, day } = endTime === undefined ? { clock: "–", day: undefined } : formatClock(endTime);
      return (
        <span className="whitespace-nowrap" title={endTime && formatPreciseMoment(endTime)}>
          {clock}
          {day !== undefined && <span className="ml-2 text-xs font-normal text-muted">{day}</span>}
        </span>
      );
    },
  },
  model: {
    name: "Model",
    track: "minmax(9.5rem, 1.6fr)",
    minRem: 9.5,
    isUsual: true,
    phone: "order-1",
    cell: ({ request }) => <ModelCell request={request} />,
  },
  key: {
    name: "Key",
    track: "minmax(6rem, 1fr)",
    minRem: 6,
    isUsual: true,
    // Limited width, so that a long name leaves room for the model on phones.
    phone:
      "order-4 col-span-2 max-lg:truncate max-lg:text-xs max-w-[45vw] justify-self-end text-right text-muted lg:max-w-none lg:justify-self-auto lg:text-left lg:text-ink",
    cell: ({ request, owner }) => (
      <span className="lg:flex lg:items-baseline lg:gap-2" title={keyLabel(request)}>
        <bdi className="line-clamp-2 lg:line-clamp-1">{keyLabel(request)}</bdi>
        {owner !== undefined && (
          <span className="line-clamp-1 text-xs text-muted">
            of <bdi>{owner}</bdi>
          </span>
        )}
      </span>
    ),
  },
  status: {
    name: "Status",
    track: "11rem",
    minRem: 11,
    isUsual: true,
    phone: "order-2 col-span-2 text-right lg:text-left",
    cell: ({ request: { outcome, refused } }) => (
      <span className="lg:flex lg:*:overflow-hidden lg:*:text-ellipsis" title={outcomeOf(outcome).label}>
        <OutcomeBadge code={outcome} refused={refused} />
      </span>
    ),
  },
  tokens: {
    name: "Tokens",
    track: "minmax(5.25rem, 5.5rem)",
    minRem: 5.25,
    isRight: true,
    order: "tokens",
    isUsual: true,
    phone: "order-6 text-right text-muted max-lg:text-xs lg:text-ink",
    cell: ({ request }) => (hasUsage(request) ? <Tokens request={request} /> : <None />),
  },
  cost: {
    name: "Cost",
    track: "minmax(4.25rem, 4.75rem)",
    minRem: 4.25,
    isRight: true,
    order: "cost",
    isUsual: true,
    phone: "order-7 text-right text-muted max-lg:text-xs lg:text-ink",
    cell: ({ request }) => (hasUsage(request) ? formatMicroUsd(request.costMicroUsd) : <None />),
  },
  duration: {
    name: "Duration",
    track: "minmax(4.75rem, 5.25rem)",
    minRem: 4.75,
    isRight: true,
    order: "duration",
    isUsual: true,
    phone: "order-5 text-muted max-lg:text-xs lg:text-right lg:text-ink",
    cell: ({ request }) => formatDuration(request.durationMs),
  },
  ttft: {
    name: "TTFT",
    title: "Time to first token",
    track: "minmax(4.25rem, 4.75rem)",
    minRem: 4.25,
    isRight: true,
    order: "ttft",
    isUsual: true,
    cell: ({ request: { firstContentMs } }) =>
      firstContentMs === undefined ? (
        <None />
      ) : (
        <>
          <span className="sr-only">time to first token </span>
          {formatDuration(firstContentMs)}
        </>
      ),
  },
  speed: {
    name: "Tokens/s",
    track: "4.75rem",
    minRem: 4.75,
    isRight: true,
    cell: ({ request }) => tokensPerSecond(request)?.toFixed(0) ?? <None />,
  },
  cached: {
    name: "Cached",
    title: "Cached prompt tokens",
    track: "4.75rem",
    minRem: 4.75,
    isRight: true,
    cell: ({ request }) => count(request.cachedTokens),
  },
  reasoning: {
    name: "Reasoning",
    title: "Reasoning tokens",
    track: "5.5rem",
    minRem: 5.5,
    isRight: true,
    cell: ({ request }) => count(request.reasoningTokens),
  },
  attempts: {
    name: "Attempts",
    track: "4.75rem",
    minRem: 4.75,
    isRight: true,
    cell: ({ request: { attempts } }) => (attempts.length === 0 ? <None /> : attempts.length),
  },
  finish: {
    name: "Finish reason",
    track: "7rem",
    minRem: 7,
    cell: ({ request }) => describeFinish(request) ?? <None />,
  },
  endpoint: {
    name: "Endpoint",
    track: "minmax(9rem, 0.7fr)",
    minRem: 9,
    cell: ({ request }) => <span className="line-clamp-1">{describeEndpoint(request)}</span>,
  },
  client: {
    name: "Client",
    track: "minmax(9rem, 0.8fr)",
    minRem: 9,
    cell: ({ request: { client } }) =>
      client === "" ? (
        <None />
      ) : (
        <bdi className="line-clamp-1" title={client}>
          {client}
        </bdi>
      ),
  },
  id: {
    name: "Request ID",
    track: "minmax(10rem, 1fr)",
    minRem: 10,
    cell: ({ request: { requestId } }) => (
      <bdi className="line-clamp-1 font-mono text-xs" title={requestId}>
        {requestId}
      </bdi>
    ),
  },
} as const satisfies Readonly<Record<string, ColumnFacts>>;

export type ColumnId = keyof typeof COLUMNS;
export type Column = ColumnFacts;

export const COLUMN_IDS = Object.keys(COLUMNS) as readonly ColumnId[];

/** Always shown, because they identify the request. */
export const FIXED: readonly ColumnId[] = ["time", "model"];

/** Shown beside the details of one request. */
export const NARROW: readonly ColumnId[] = ["time", "model", "status"];

export function columnOf(id: ColumnId): Column {
  return COLUMNS[id];
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

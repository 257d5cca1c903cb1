import { useInfiniteQuery } from "@tanstack/react-query";
import { RotateCw } from "lucide-react";
import { sortedQuery } from "../api/requests.ts";
import { Button } from "../components/button.tsx";
import { Empty } from "../components/page.tsx";
import { formatMoment } from "../format/time.ts";
import type { ColumnId } from "./columns.tsx";
import { type LogView, ORDERS, sortBy } from "./filter.ts";
import { Rows } from "./rows.tsx";

const NAMES = {
  tokens: "tokens",
  cost: "cost",
  duration: "duration",
  ttft: "time to first token",
} as const;

interface SortedLogProps {
  readonly view: LogView;
  readonly columns: readonly ColumnId[];
}

/** The requests in another order than the latest first. Not live. */
export function SortedLog({ view, columns }: SortedLogProps) {
  const list = useInfiniteQuery(sortedQuery(view.filter, { order: ORDERS[view.order], ascending: view.isAscending }));
  const pages = list.data?.pages ?? [];
  const since = pages.at(-1)?.sortedSince;
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
        <p>
          {describe(view)} first, without refused requests.
          {since !== undefined && ` The latest 50,000 requests are sorted, since ${formatMoment(since)}.`}
        </p>
        <Button look="quiet" size="small" onClick={() => view.change(sortBy("time", false))}>
          Latest first
        </Button>
        <Button look="quiet" size="small" busy={list.isFetching} onClick={() => void list.refetch()}>
          <RotateCw aria-hidden className="size-4" />
          Refresh
        </Button>
      </div>
      <section aria-label="Log" className="outline-none">
        <Rows
          list={list}
          requests={pages.flatMap(({ requests }) => requests)}
          view={view}
          columns={columns}
          nothing={<Empty title="No matching requests">No requests match these filters.</Empty>}
        />
      </section>
    </>
  );
}

function describe({ order, isAscending }: LogView): string {
  return order === "time" ? "Oldest" : `${isAscending ? "Lowest" : "Highest"} ${NAMES[order]}`;
}

import { type ReactNode, useEffect, useMemo } from "react";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { useOwnerNames } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Loading } from "../components/page.tsx";
import { NO_CALLER } from "../format/callers.ts";
import { requestPath } from "../paths.ts";
import { type ColumnId, NARROW } from "./columns.tsx";
import { type LogView, sortBy } from "./filter.ts";
import { LogHead, LogRow, tracksOf } from "./log-row.tsx";
import { SidePanel } from "./side-panel.tsx";
import { useIsWide } from "../components/media.ts";
import { selectedPath, useSelected } from "./use-selected.ts";

/** A list that is fetched in pages. */
interface PagedList {
  readonly isFetching: boolean;
  readonly isLoadingError: boolean;
  readonly error: unknown;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly isFetchNextPageError: boolean;
  readonly refetch: () => unknown;
  readonly fetchNextPage: () => unknown;
}

interface RowsProps {
  readonly list: PagedList;
  readonly requests: readonly LoggedRequest[];
  readonly view: LogView;
  readonly columns: readonly ColumnId[];
  /** Shown when the list is empty. */
  readonly nothing: ReactNode;
}

/** The table of requests, and beside it the one that is selected. */
export function Rows({ list, requests, view, columns, nothing }: RowsProps) {
  const selected = useSelected(requests);
  const ownerOf = useOwners();
  const isWide = useIsWide();
  const isOpen = selected.id !== "";
  const tracks = useMemo(
    () => tracksOf(isOpen ? NARROW.filter((id) => columns.includes(id)) : columns),
    [isOpen, columns],
  );
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  // Fetches the next page before the reader moves past the last request.
  const isAtEnd = isOpen && requests.at(-1)?.id === selected.id && hasNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isAtEnd && !isFetchingNextPage) fetchNextPage();
  }, [isAtEnd, isFetchingNextPage, fetchNextPage]);
  const isEmpty = requests.length === 0;
  const table = isEmpty ? (
    list.isFetching ? (
      <Loading what="the requests" />
    ) : list.isLoadingError ? (
      <Unavailable error={list.error} onRetry={() => void list.refetch()} />
    ) : (
      nothing
    )
  ) : (
    <div
      role="table"
      aria-label="Requests"
      style={tracks.style}
      className="overflow-x-auto overflow-y-hidden rounded-xl border border-line bg-surface text-sm"
    >
      <LogHead
        tracks={tracks}
        order={view.order}
        isAscending={view.isAscending}
        onOrder={(order, isAscending) => view.change(sortBy(order, isAscending))}
      />
      <div role="rowgroup" className="divide-y divide-line lg:min-w-(--room)">
        {requests.map((request) => (
          <LogRow
            key={request.id}
            request={request}
            tracks={tracks}
            owner={ownerOf(request)}
            isOpen={request.id === selected.id}
            isOtherOpen={isOpen}
            href={isWide ? selectedPath(view.query, request.id) : requestPath(request.id)}
          />
        ))}
      </div>
    </div>
  );
  return (
    <div className={isOpen ? "items-start gap-4 xl:grid xl:grid-cols-[minmax(0,1fr)_36rem]" : ""}>
      <div className="min-w-0">
        {table}
        {hasNextPage && !(isEmpty && list.isFetching) && (
          <div className="mt-5 text-center">
            {isFetchNextPageError && (
              <p role="alert" className="mb-3 text-sm text-danger">
                Could not load more requests. Try again.
              </p>
            )}
            <Button look="secondary" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              {isEmpty ? "Search older requests" : "Show more"}
            </Button>
          </div>
        )}
      </div>
      {isOpen && <SidePanel selected={selected} />}
    </div>
  );
}

/** Returns the function that names the account of a request, if it is another than the signed-in one. */
function useOwners(): (request: LoggedRequest) => string | undefined {
  const account = useAccount();
  const names = useOwnerNames();
  return ({ accountId }) =>
    [account.id, NO_CALLER].includes(accountId) ? undefined : (names.get(accountId) ?? accountId);
}

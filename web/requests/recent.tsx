import { useQuery } from "@tanstack/react-query";
import { type LogFilter, recentQuery } from "../api/requests.ts";
import { useOwnerNames } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS, requestPath } from "../paths.ts";
import type { ColumnId } from "./columns.tsx";
import { LogHead, LogRow, tracksOf } from "./log-row.tsx";

interface RecentRequestsProps {
  readonly filter: LogFilter;
  readonly columns: readonly ColumnId[];
  /** Query of the request log for all of them. */
  readonly query: Readonly<Record<string, string>>;
}

/** The latest requests of a filter. */
export function RecentRequests({ filter, columns, query }: RecentRequestsProps) {
  const recent = useQuery(recentQuery(filter));
  const account = useAccount();
  const names = useOwnerNames();
  const tracks = tracksOf(columns);
  return (
    <section aria-labelledby="recent" className="space-y-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <h2 id="recent" className="text-base font-semibold">
          Latest requests
        </h2>
        <span className="text-sm">
          <TextLink to={`${PATHS.requests}?${new URLSearchParams(query).toString()}`}>All requests</TextLink>
        </span>
      </div>
      {recent.isPending ? (
        <Loading what="the requests" />
      ) : recent.isLoadingError ? (
        <Unavailable error={recent.error} onRetry={() => void recent.refetch()} />
      ) : recent.data.length === 0 ? (
        <Empty title="No requests">None is in the log.</Empty>
      ) : (
        <div
          role="table"
          aria-label="Latest requests"
          style={tracks.style}
          className="overflow-x-auto overflow-y-hidden rounded-xl border border-line bg-surface text-sm"
        >
          <LogHead tracks={tracks} />
          <div role="rowgroup" className="divide-y divide-line lg:min-w-(--room)">
            {recent.data.map((request) => (
              <LogRow
                key={request.id}
                request={request}
                tracks={tracks}
                owner={request.accountId === account.id ? undefined : names.get(request.accountId)}
                isOpen={false}
                isOtherOpen={false}
                href={requestPath(request.id)}
              />
            ))}
          </div>
        </div>
      )}
    </section>
  );
}

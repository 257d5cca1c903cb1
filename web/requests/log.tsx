import { useRef, useState } from "react";
import { readFailure } from "../api/failure.ts";
import { useOwnerNames } from "../api/owners.ts";
import type { LogFilter } from "../api/requests.ts";
import { useAccount } from "../api/session.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { Switch } from "../components/switch.tsx";
import { NO_CALLER } from "../format/callers.ts";
import { Announcement } from "./announcement.tsx";
import { HeldButton } from "./held-button.tsx";
import { LogHead, LogRow } from "./log-row.tsx";
import { useLog } from "./use-log.ts";
import type { WatchState } from "./use-watch.ts";

interface LogProps {
  readonly filter: LogFilter;
  /** Whether live updates are on. */
  readonly isLive: boolean;
  readonly onLive: (isLive: boolean) => void;
}

/** List of requests with live updates. */
export function Log({ filter, isLive: isWanted, onLive }: LogProps) {
  const rows = useRef<HTMLElement>(null);
  const [openedMs] = useState(() => Date.now());
  // A period that ended before the page was opened gets no new requests.
  const canBeLive = filter.untilMs === undefined || filter.untilMs > openedMs;
  const isLive = isWanted && canBeLive;
  const log = useLog(filter, isLive, () => isBeingRead(rows.current));
  const failing = typeof log.state === "object" ? readFailure(log.state.error) : undefined;
  return (
    <>
      <div className="my-2 flex items-center justify-end gap-2">
        <span className="text-sm text-muted">{describe(log.state)}</span>
        <Switch on={isLive} onChange={onLive} disabled={!canBeLive}>
          Live
        </Switch>
      </div>
      {failing !== undefined && (
        <div className="mb-4">
          <Alert>Live updates stopped. {failing.message}</Alert>
        </div>
      )}
      <Announcement arrived={log.arrived} />
      {log.held > 0 && <HeldButton count={log.held} rows={rows} onShow={log.showHeld} />}
      <section ref={rows} tabIndex={-1} aria-label="Log" className="scroll-mt-4 outline-none">
        <Rows log={log} isLive={isLive} isNarrowed={Object.keys(filter).length > 0} />
      </section>
    </>
  );
}

interface RowsProps {
  readonly log: ReturnType<typeof useLog>;
  readonly isLive: boolean;
  readonly isNarrowed: boolean;
}

function Rows({ log: { list, requests }, isLive, isNarrowed }: RowsProps) {
  const account = useAccount();
  const names = useOwnerNames();
  if (requests.length === 0) {
    if (list.isFetching) return <Loading what="the requests" />;
    if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  }
  return (
    <>
      {requests.length === 0 ? (
        <Nothing isLive={isLive} isNarrowed={isNarrowed} />
      ) : (
        <div
          role="table"
          aria-label="Requests"
          className="overflow-hidden rounded-xl border border-line bg-surface text-sm"
        >
          <LogHead />
          <div role="rowgroup" className="divide-y divide-line">
            {requests.map((request) => (
              <LogRow
                key={request.id}
                request={request}
                owner={
                  [account.id, NO_CALLER].includes(request.accountId)
                    ? undefined
                    : (names.get(request.accountId) ?? request.accountId)
                }
              />
            ))}
          </div>
        </div>
      )}
      {list.hasNextPage && (
        <div className="mt-5 text-center">
          {list.isFetchNextPageError && (
            <p role="alert" className="mb-3 text-sm text-danger">
              Could not load more requests. Try again.
            </p>
          )}
          <Button look="secondary" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {requests.length === 0 ? "Search older requests" : "Show more"}
          </Button>
        </div>
      )}
    </>
  );
}

function Nothing({ isLive, isNarrowed }: { readonly isLive: boolean; readonly isNarrowed: boolean }) {
  if (isNarrowed) return <Empty title="No matching requests">No requests match these filters.</Empty>;
  return (
    <Empty title="No requests yet">
      {isLive
        ? "Send a request with one of your keys. It appears here as soon as it completes."
        : "Turn on Live to see requests as soon as they complete."}
    </Empty>
  );
}

const STATES = { off: "Paused", connecting: "Connecting…", live: "", interrupted: "Reconnecting…" } as const;

function describe(state: WatchState): string {
  return typeof state === "object" ? "Stopped" : STATES[state];
}

/** Whether the user has scrolled into the log, or the focus is inside it. */
function isBeingRead(rows: HTMLElement | null): boolean {
  if (rows === null) return false;
  const focused = document.activeElement;
  return (focused !== rows && rows.contains(focused)) || rows.getBoundingClientRect().top < 0;
}

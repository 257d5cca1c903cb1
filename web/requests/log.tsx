import { useRef, useState } from "react";
import { createPortal } from "react-dom";
import { readFailure } from "../api/failure.ts";
import { Alert } from "../components/alert.tsx";
import { Empty } from "../components/page.tsx";
import { Switch } from "../components/switch.tsx";
import { Announcement } from "./announcement.tsx";
import type { ColumnId } from "./columns.tsx";
import type { LogView } from "./filter.ts";
import { HeldButton } from "./held-button.tsx";
import { Rows } from "./rows.tsx";
import { useLog } from "./use-log.ts";
import type { WatchState } from "./use-watch.ts";

interface LogProps {
  readonly view: LogView;
  readonly columns: readonly ColumnId[];
  /** Whether live updates are on. */
  readonly isLive: boolean;
  readonly onLive: (isLive: boolean) => void;
  /** Place of the switch for live updates. */
  readonly slot: HTMLElement | null;
}

/** List of requests with live updates. */
export function Log({ view, columns, isLive: isWanted, onLive, slot }: LogProps) {
  const { filter } = view;
  const rows = useRef<HTMLElement>(null);
  const [openedMs] = useState(() => Date.now());
  // A period that ended before the page was opened gets no new requests.
  const canBeLive = filter.untilMs === undefined || filter.untilMs > openedMs;
  const isLive = isWanted && canBeLive;
  const log = useLog(filter, isLive, () => isBeingRead(rows.current));
  const failing = typeof log.state === "object" ? readFailure(log.state.error) : undefined;
  return (
    <>
      {slot !== null &&
        createPortal(
          <>
            <span className="text-sm text-muted">{describe(log.state)}</span>
            <Switch on={isLive} onChange={onLive} disabled={!canBeLive}>
              Live
            </Switch>
          </>,
          slot,
        )}
      {failing !== undefined && (
        <div className="mb-4">
          <Alert>Live updates stopped. {failing.message}</Alert>
        </div>
      )}
      <Announcement arrived={log.arrived} />
      {log.held > 0 && <HeldButton count={log.held} rows={rows} onShow={log.showHeld} />}
      <section ref={rows} tabIndex={-1} aria-label="Log" className="scroll-mt-4 outline-none">
        <Rows
          list={log.list}
          requests={log.requests}
          view={view}
          columns={columns}
          nothing={<Nothing isLive={isLive} isNarrowed={Object.keys(filter).length > 0} />}
        />
      </section>
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

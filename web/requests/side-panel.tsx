import { useEffect, useRef } from "react";
import { useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp, Maximize2, X } from "lucide-react";
import { Link } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { requestQuery } from "../api/requests.ts";
import { Unavailable } from "../components/alert.tsx";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { Loading } from "../components/page.tsx";
import { ICON_BUTTON } from "../components/table.tsx";
import { formatTime } from "../format/time.ts";
import { requestPath } from "../paths.ts";
import { RequestLinks, RequestView } from "./request-view.tsx";
import { type Selected, useKeys } from "./use-selected.ts";

/** One request beside the log, with buttons for the previous and the next one. On small screens it covers the log. */
export function SidePanel({ selected }: { readonly selected: Selected }) {
  const { id, close, previous, next } = selected;
  const heading = useRef<HTMLHeadingElement>(null);
  const scrolled = useRef<HTMLDivElement>(null);
  const found = useQuery(requestQuery(id));
  useKeys(selected, () => scrolled.current);
  useEffect(() => {
    if (id === "") return;
    heading.current?.focus({ preventScroll: true });
    scrolled.current?.scrollTo({ top: 0 });
  }, [id]);
  const what = found.data === undefined ? "Request" : describe(found.data);
  return (
    <aside
      aria-label="Request"
      className="flex flex-col overflow-hidden border-line bg-canvas max-xl:fixed max-xl:inset-y-0 max-xl:right-0 max-xl:z-20 max-xl:w-full max-xl:shadow-2xl lg:max-xl:w-[36rem] lg:border-l xl:sticky xl:top-4 xl:h-[calc(100dvh-2rem)] xl:rounded-xl xl:border"
    >
      <header className="flex items-center gap-1 border-b border-line bg-surface px-3 py-2">
        <h2 ref={heading} tabIndex={-1} className="line-clamp-1 min-w-0 flex-1 px-1 font-semibold outline-none">
          <bdi>{what}</bdi>
        </h2>
        <button
          type="button"
          aria-label="Previous request"
          title="Previous (K)"
          aria-keyshortcuts="K"
          disabled={previous === undefined}
          onClick={previous}
          className={`${ICON_BUTTON} disabled:opacity-40`}
        >
          <ChevronUp aria-hidden className="size-4" />
        </button>
        <button
          type="button"
          aria-label="Next request"
          title="Next (J)"
          aria-keyshortcuts="J"
          disabled={next === undefined}
          onClick={next}
          className={`${ICON_BUTTON} disabled:opacity-40`}
        >
          <ChevronDown aria-hidden className="size-4" />
        </button>
        <Link href={requestPath(id)} aria-label="Open as a page" title="Open as a page" className={ICON_BUTTON}>
          <Maximize2 aria-hidden className="size-4" />
        </Link>
        <button
          type="button"
          aria-label="Close"
          title="Close (Escape)"
          aria-keyshortcuts="Escape"
          onClick={close}
          className={ICON_BUTTON}
        >
          <X aria-hidden className="size-4" />
        </button>
      </header>
      <div
        ref={scrolled}
        role="group"
        tabIndex={0}
        aria-label="Details of the request"
        className="flex-1 overflow-y-auto p-4"
      >
        {found.data !== undefined ? (
          <div className="space-y-4">
            <div className="flex flex-wrap items-center gap-2">
              <OutcomeBadge code={found.data.outcome} refused={found.data.refused} />
              <span className="flex-1" />
              <RequestLinks request={found.data} />
            </div>
            <RequestView request={found.data} isNarrow />
          </div>
        ) : found.isPending ? (
          <Loading what="the request" />
        ) : (
          <Unavailable error={found.error} onRetry={() => void found.refetch()} />
        )}
      </div>
    </aside>
  );
}

function describe({ servedModel, requestedModel, endTime }: LoggedRequest): string {
  const model = servedModel || requestedModel || "Unknown model";
  return endTime === undefined ? model : `${model} · ${formatTime(endTime)}`;
}

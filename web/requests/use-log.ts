import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { skipToken, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { queryClient } from "../api/query-client.ts";
import { type LogFilter, logQuery } from "../api/requests.ts";
import { useWatch } from "./use-watch.ts";

/** Number of streamed requests kept in addition to the list. Above it the list is refetched. */
const MAX_FRESH = 200;
/** Shortest interval between refetches of the list after skipped requests. */
const REFRESH_MS = 5_000;
/** Number of empty pages loaded automatically before the user must continue the search. */
const MAX_EMPTY_PAGES = 5;

/** Requests received while the user reads further down. */
interface Held {
  readonly requests: readonly LoggedRequest[];
  /** Number of requests, including those not kept. */
  readonly count: number;
  /** Whether the list must be refetched. */
  readonly isStale: boolean;
}

const NOTHING: Held = { requests: [], count: 0, isStale: false };

/**
 * State of the log: the list merged with streamed requests, the latest end first. Requests received while `isReading`
 * are held back, so that the rows do not move. Each filter needs its own instance.
 */
export function useLog(filter: LogFilter, isLive: boolean, isReading: () => boolean) {
  const list = useInfiniteQuery(logQuery(filter));
  const fresh = useFresh(filter);
  // A ref, because batches may arrive faster than renders.
  const held = useRef(NOTHING);
  const [heldCount, setHeldCount] = useState(0);
  const [arrived, setArrived] = useState(0);
  const isVisible = useVisibility();
  const refreshSoon = useRefresh(filter);
  const keep = (all: Held): void => {
    held.current = all;
    setHeldCount(all.count);
  };

  const show = (): void => {
    const { requests, isStale } = held.current;
    keep(NOTHING);
    if (addFresh(filter, requests) > MAX_FRESH || isStale) refreshSoon();
  };
  const state = useWatch(filter, isLive && isVisible, {
    onBegin(refused) {
      // Earlier requests are not counted as new.
      const inTime = refused.filter((request) => isInTime(request, filter)).toReversed();
      keep({ ...held.current, requests: merge(held.current.requests, inTime).slice(0, MAX_FRESH), isStale: true });
      if (!isReading()) show();
    },
    onBatch(batch, skipped) {
      if (batch.length === 0 && skipped === 0) return;
      setArrived((before) => before + batch.length);
      keep(hold(held.current, batch, skipped));
      if (!isReading()) show();
    },
  });

  const { data, hasNextPage, isFetching, fetchNextPage } = list;
  const pages = data?.pages ?? [];
  const isSearching = hasNextPage && pages.length <= MAX_EMPTY_PAGES && pages.at(-1)?.requests.length === 0;
  useEffect(() => {
    if (isSearching && !isFetching) void fetchNextPage();
  }, [isSearching, isFetching, fetchNextPage]);

  const requests = useMemo(() => {
    const listed = data?.pages.flatMap((page) => page.requests) ?? [];
    // Streamed requests older than the loaded pages belong further down.
    const oldest = hasNextPage ? listed.at(-1) : undefined;
    return merge(oldest === undefined ? fresh : fresh.filter((each) => endMs(each) >= endMs(oldest)), listed);
  }, [fresh, data, hasNextPage]);
  return { list, requests, state, held: heldCount, arrived, showHeld: show };
}

function hold(held: Held, batch: readonly LoggedRequest[], skipped: number): Held {
  const requests = [...batch.toReversed(), ...held.requests];
  return {
    requests: requests.slice(0, MAX_FRESH),
    count: held.count + batch.length + skipped,
    isStale: held.isStale || skipped > 0 || requests.length > MAX_FRESH,
  };
}

/** Query key of the streamed requests. Cached while other pages are open, because the list has only samples of refused requests. */
function freshKey(filter: LogFilter) {
  return ["requests", "fresh", filter] as const;
}

function useFresh(filter: LogFilter): readonly LoggedRequest[] {
  const fresh = useQuery<readonly LoggedRequest[]>({
    queryKey: freshKey(filter),
    queryFn: skipToken,
    staleTime: Infinity,
  });
  return fresh.data ?? NOTHING.requests;
}

/** Adds requests and drops the oldest above MAX_FRESH. Returns the number before dropping. */
function addFresh(filter: LogFilter, requests: readonly LoggedRequest[]): number {
  let count = 0;
  queryClient.setQueryData<readonly LoggedRequest[]>(freshKey(filter), (before = []) => {
    const all = merge(requests, before);
    count = all.length;
    return all.slice(0, MAX_FRESH);
  });
  return count;
}

/** Schedules a refetch of the first page, at most one per REFRESH_MS. */
function useRefresh(filter: LogFilter): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latestMs = useRef(-Infinity);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return () => {
    if (timer.current !== undefined) return;
    const waitMs = Math.max(0, latestMs.current + REFRESH_MS - performance.now());
    timer.current = setTimeout(() => {
      timer.current = undefined;
      latestMs.current = performance.now();
      void refresh(filter);
    }, waitMs);
  };
}

async function refresh(filter: LogFilter): Promise<void> {
  const { queryKey } = logQuery(filter);
  // A refetch already in flight may miss the newest requests.
  await queryClient.cancelQueries({ queryKey, exact: true });
  queryClient.setQueryData(
    queryKey,
    (before) => before && { pages: before.pages.slice(0, 1), pageParams: before.pageParams.slice(0, 1) },
  );
  await queryClient.refetchQueries({ queryKey, exact: true });
  const [first] = queryClient.getQueryData(queryKey)?.pages ?? [];
  const oldest = first?.requests.at(-1);
  if (oldest === undefined || first?.nextPageToken === "") return;
  queryClient.setQueryData<readonly LoggedRequest[]>(freshKey(filter), (before) =>
    before?.filter((request) => request.refused || endMs(request) >= endMs(oldest)),
  );
}

/** Merges two lists without duplicates, the latest end first. */
function merge(first: readonly LoggedRequest[], second: readonly LoggedRequest[]): LoggedRequest[] {
  const known = new Map(first.map((request) => [request.id, request]));
  const all = [...known.values(), ...second.filter(({ id }) => !known.has(id))];
  return all.toSorted((a, b) => endMs(b) - endMs(a));
}

/** Whether the request is in the period of the filter, which the stream does not support. */
function isInTime(request: LoggedRequest, { sinceMs = -Infinity, untilMs = Infinity }: LogFilter): boolean {
  return endMs(request) >= sinceMs && endMs(request) < untilMs;
}

function endMs({ endTime }: LoggedRequest): number {
  return endTime === undefined ? 0 : timestampMs(endTime);
}

/** Whether the page is visible. Hidden pages close the stream to free its connection. */
function useVisibility(): boolean {
  return useSyncExternalStore(
    (changed) => {
      document.addEventListener("visibilitychange", changed);
      return () => document.removeEventListener("visibilitychange", changed);
    },
    () => document.visibilityState === "visible",
  );
}

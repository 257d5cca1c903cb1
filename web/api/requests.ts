import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, queryOptions, useQuery } from "@tanstack/react-query";
import {
  type ListRequestsResponse,
  type LoggedRequest,
  type RequestFilterSchema,
  type RequestOrder,
  RequestService,
} from "../../gen/parley/console/v1/request_pb.js";
import type { AttributionField } from "../format/attribution.ts";
import { queryClient } from "./query-client.ts";
import { useMay } from "./session.ts";
import { settingsQuery } from "./settings.ts";
import { transport } from "./transport.ts";

export const requests = createClient(RequestService, transport);

/**
 * Filter of the request log. Missing fields match all requests. Times are Unix milliseconds, so that filters can be
 * compared.
 */
export interface LogFilter extends Readonly<Partial<Record<AttributionField, string>>> {
  readonly accountId?: string;
  readonly keyId?: string;
  readonly model?: string;
  readonly outcome?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

/** Converts a filter to its message. `live` omits the times, which only the list supports. */
export function toFilterMessage(filter: LogFilter, use: "list" | "live"): MessageInitShape<typeof RequestFilterSchema> {
  const { sinceMs, untilMs, ...others } = filter;
  if (use === "live") return others;
  return {
    ...others,
    ...(sinceMs !== undefined && { since: timestampFromMs(sinceMs) }),
    ...(untilMs !== undefined && { until: timestampFromMs(untilMs) }),
  };
}

/** The request log, with pagination. Refetched only on demand, because new requests arrive by stream. */
export function logQuery(filter: LogFilter) {
  return infiniteQueryOptions({
    queryKey: ["requests", "log", filter],
    queryFn: ({ pageParam, signal }) =>
      requests.list({ filter: toFilterMessage(filter, "list"), pageToken: pageParam }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }: ListRequestsResponse) => nextPageToken || undefined,
    staleTime: Infinity,
  });
}

/** Number of requests on the page of a key or a model. */
const RECENT = 10;

/** The latest requests. */
export function recentQuery(filter: LogFilter) {
  return queryOptions({
    queryKey: ["requests", "recent", filter],
    queryFn: async ({ signal }) =>
      (await requests.list({ filter: toFilterMessage(filter, "list"), limit: RECENT }, { signal })).requests,
    refetchInterval: 15_000,
  });
}

/** An order: the latest, or the highest value, first, or the reverse. */
export interface Sort {
  readonly order: RequestOrder;
  readonly ascending: boolean;
}

/** The requests in another order than the latest first, with pagination. */
export function sortedQuery(filter: LogFilter, sort: Sort) {
  return infiniteQueryOptions({
    queryKey: ["requests", "sorted", sort, filter],
    queryFn: ({ pageParam, signal }) =>
      requests.list({ filter: toFilterMessage(filter, "list"), pageToken: pageParam, ...sort }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }: ListRequestsResponse) => nextPageToken || undefined,
    staleTime: 60_000,
  });
}

/** One request, by completion ID or request ID. */
export function requestQuery(id: string) {
  return queryOptions({
    queryKey: ["requests", "one", id],
    queryFn: async ({ signal }) => (await requests.get({ id }, { signal })).request,
    staleTime: 60_000,
  });
}

/**
 * The stored prompt and answer of a request; null without one. Fetched once: each reading has an entry in the audit log.
 */
export function contentQuery(id: string) {
  return queryOptions({
    queryKey: ["requests", "content", id],
    queryFn: async ({ signal }) => (await requests.getContent({ id }, { signal })).content ?? null,
    staleTime: Infinity,
  });
}

/** Whether the signed-in account may read prompts and answers, and the installation stores any. */
export function useMayReadContent(): boolean {
  const mayRead = useMay("content.read");
  return useContentStoreDays() > 0 && mayRead;
}

/** Days for which prompts and answers are stored, for keys that store them. 0: none are stored. */
export function useContentStoreDays(): number {
  return useQuery(settingsQuery).data?.contentStoreDays ?? 0;
}

/** Sentence about stored prompts and answers, shown above requests. */
export function useContentNotice(): string {
  return useContentStoreDays() > 0
    ? "Prompts and responses are stored only for keys that store them."
    : "Prompts and responses are never stored.";
}

/** Caches a request before its page opens, because the process that answers may not have a refused request of another process. */
export function noteRequest(request: LoggedRequest): void {
  queryClient.setQueryData(requestQuery(request.id).queryKey, request);
}

import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { AlertService } from "../../gen/parley/console/v1/alert_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const alerts = createClient(AlertService, transport);

const REFRESH_MS = 30_000;

/** Number of open alerts that are not acknowledged. */
export const alertCountQuery = queryOptions({
  queryKey: ["alerts", "count"],
  queryFn: async ({ signal }) => (await alerts.getCount({}, { signal })).active,
  refetchInterval: REFRESH_MS,
});

/** Open or resolved alerts, latest first, with pagination. */
export function alertsQuery(resolved: boolean) {
  return infiniteQueryOptions({
    queryKey: ["alerts", resolved ? "resolved" : "open"],
    queryFn: ({ signal, pageParam }) => alerts.list({ resolved, pageToken: pageParam }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    refetchInterval: REFRESH_MS,
  });
}

/** Channels, for administrators. */
export const channelsQuery = queryOptions({
  queryKey: ["alerts", "channels"],
  queryFn: ({ signal }) => alerts.listChannels({}, { signal }),
});

/** Thresholds, for administrators. */
export const thresholdsQuery = queryOptions({
  queryKey: ["alerts", "thresholds"],
  queryFn: ({ signal }) => alerts.getThresholds({}, { signal }),
});

/** Refetches all of them after a change. */
export function refreshAlerts(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ["alerts"] });
}

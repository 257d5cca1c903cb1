import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { StopService } from "../../gen/parley/console/v1/stop_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const stops = createClient(StopService, transport);

/** The stops in force that the account can see, the latest first. */
export const stopsQuery = queryOptions({
  queryKey: ["stops"],
  queryFn: async ({ signal }) => (await stops.list({}, { signal })).stops,
});

/** Refetches the stops after a change. */
export function refreshStops(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: stopsQuery.queryKey });
}

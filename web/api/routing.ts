import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { RoutingService } from "../../gen/parley/console/v1/routing_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const routing = createClient(RoutingService, transport);

/** Credentials and aliases of the signed-in account. */
export const routingQuery = queryOptions({
  queryKey: ["routing"],
  queryFn: ({ signal }) => routing.getRouting({}, { signal }),
});

/** Refetches them after a change. */
export function refreshRouting(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: routingQuery.queryKey });
}

import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { OverviewService } from "../../gen/parley/console/v1/overview_pb.js";
import { transport } from "./transport.ts";

const overview = createClient(OverviewService, transport);

const REFRESH_MS = 60_000;

/** The overview of the signed-in account, or of all for administrators. */
export const overviewQuery = queryOptions({
  queryKey: ["overview"],
  queryFn: ({ signal }) => overview.get({ timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone }, { signal }),
  refetchInterval: REFRESH_MS,
});

import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { UsageGrouping, UsageService } from "../../../../gen/parley/console/v1/usage_pb.js";
import { transport } from "./transport.ts";

const usage = createClient(UsageService, transport);

const DAY_MS = 24 * 60 * 60_000;

/** What each key has spent in this calendar month (UTC), in millionths of a US dollar, by its ID. */
export const spendingQuery = queryOptions({
  queryKey: ["usage", "this month", "by key"],
  async queryFn({ signal }) {
    const now = new Date();
    const since = timestampFromMs(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()));
    const { rows } = await usage.summarize({ since, by: UsageGrouping.KEY }, { signal });
    return new Map(rows.map(({ group, costMicroUsd }) => [group, costMicroUsd]));
  },
});

/** The sums of the last days, one row for each group. */
export function usageQuery(by: UsageGrouping, days: number) {
  return queryOptions({
    queryKey: ["usage", "sums", by, days],
    queryFn: async ({ signal }) => {
      const since = timestampFromMs(Date.now() - days * DAY_MS);
      return (await usage.summarize({ since, by }, { signal })).rows;
    },
  });
}

import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, keepPreviousData } from "@tanstack/react-query";
import {
  AttributionService,
  type BudgetHolder,
  type ListBudgetsResponse,
} from "../../gen/parley/console/v1/attribution_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const attribution = createClient(AttributionService, transport);

const QUERY = "attributed budgets";

/** Spending of the end users or sessions of a key, with pagination. */
export function budgetsQuery(of: { readonly keyId: string; readonly holder: BudgetHolder; readonly search: string }) {
  return infiniteQueryOptions({
    queryKey: [QUERY, of],
    queryFn: ({ pageParam, signal }) =>
      attribution.listBudgets({ ...of, pageToken: pageParam, limit: 100 }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }: ListBudgetsResponse) => nextPageToken || undefined,
    placeholderData: keepPreviousData,
  });
}

/** Refetches the lists after a change. */
export function refreshBudgets(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: [QUERY] });
}

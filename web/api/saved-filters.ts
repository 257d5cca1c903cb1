import { queryOptions } from "@tanstack/react-query";
import { queryClient } from "./query-client.ts";
import { requests } from "./requests.ts";

/** The account's saved filters. */
export const savedFiltersQuery = queryOptions({
  queryKey: ["requests", "saved filters"],
  queryFn: async ({ signal }) => (await requests.listSavedFilters({}, { signal })).filters,
  staleTime: 60_000,
});

/** Fetches the saved filters again after a change. */
export function refreshSavedFilters(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: savedFiltersQuery.queryKey });
}

import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type KeyOrder, KeyService, type ListKeysResponse } from "../../gen/parley/console/v1/key_pb.js";
import { loadPages } from "./pages.ts";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const keys = createClient(KeyService, transport);

/** All keys that the account can see, newest first. */
export const keysQuery = queryOptions({
  queryKey: ["keys"],
  async queryFn({ signal }) {
    const pages = await loadPages((pageToken) => keys.list({ pageToken }, { signal }));
    return pages.flatMap((page) => page.keys).toReversed();
  },
});

/** Order and filter of a list of keys. */
export interface KeyView {
  readonly order: KeyOrder;
  readonly descending: boolean;
  /** Keys that work, or those that no longer do. */
  readonly active: boolean;
  /** Empty: all owners in view. */
  readonly accountId: string;
  /** Words of the name, the secret's ends or the owner's name. Empty: any. */
  readonly find: string;
  /** A model that the keys may use. Empty: any. */
  readonly modelId: string;
}

/** Number of keys that are fetched at a time. */
const PAGE = 100;

/** Keys in an order, with pagination. */
export function keyListQuery(view: KeyView, limit = PAGE) {
  return infiniteQueryOptions({
    queryKey: [...keysQuery.queryKey, "list", view, limit],
    queryFn: ({ pageParam, signal }) => keys.list({ ...view, limit, pageToken: pageParam }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }: ListKeysResponse) => nextPageToken || undefined,
    placeholderData: keepPreviousData,
  });
}

/** Longest text that the server searches for. */
export const MAX_FIND = 200;

/** The latest keys of an account (empty: all in view) with all words of a text, for a field or the palette. */
export function foundKeysQuery(accountId: string, find: string, limit: number) {
  return queryOptions({
    queryKey: [...keysQuery.queryKey, "found", accountId, find, limit],
    queryFn: ({ signal }) => keys.list({ accountId, find, limit, descending: true }, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** One key. */
export function keyQuery(id: string) {
  return queryOptions({
    queryKey: [...keysQuery.queryKey, "one", id],
    queryFn: async ({ signal }) => (await keys.get({ id }, { signal })).key!,
  });
}

/** Refetches the keys after a change. */
export function refreshKeys(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: keysQuery.queryKey });
}

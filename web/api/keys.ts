import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
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

/** Refetches the keys after a change. */
export function refreshKeys(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: keysQuery.queryKey });
}

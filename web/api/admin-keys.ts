import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { AdminKeyService } from "../../gen/parley/console/v1/admin_key_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const adminKeys = createClient(AdminKeyService, transport);

/** All administration keys, newest first. */
export const adminKeysQuery = queryOptions({
  queryKey: ["admin-keys"],
  queryFn: async ({ signal }) => (await adminKeys.list({}, { signal })).keys,
});

/** Refetches the keys after a change. */
export function refreshAdminKeys(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: adminKeysQuery.queryKey });
}

import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { AccountService } from "../../gen/parley/console/v1/account_pb.js";
import { loadPages } from "./pages.ts";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const accounts = createClient(AccountService, transport);

/** All accounts, for administrators. */
export const accountsQuery = queryOptions({
  queryKey: ["accounts"],
  async queryFn({ signal }) {
    const pages = await loadPages((pageToken) => accounts.list({ pageToken }, { signal }));
    return pages.flatMap((page) => page.accounts);
  },
  staleTime: 30_000,
});

/** Refetches the accounts after a change. */
export function refreshAccounts(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: accountsQuery.queryKey });
}

/** All invitations, for administrators. */
export const invitationsQuery = queryOptions({
  queryKey: ["invitations"],
  queryFn: async ({ signal }) => (await accounts.listInvitations({}, { signal })).invitations,
});

/** Refetches the invitations after a change. */
export function refreshInvitations(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: invitationsQuery.queryKey });
}

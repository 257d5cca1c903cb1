import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { AccountService } from "../../../../gen/parley/console/v1/account_pb.js";
import { transport } from "./transport.ts";

export const accounts = createClient(AccountService, transport);

/** All accounts, for administrators. */
export const accountsQuery = queryOptions({
  queryKey: ["accounts"],
  queryFn: async ({ signal }) => (await accounts.list({}, { signal })).accounts,
  staleTime: 30_000,
});

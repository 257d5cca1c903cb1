import { createClient } from "@connectrpc/connect";
import { FactorService } from "../../gen/parley/console/v1/factor_pb.js";
import { queryClient } from "./query-client.ts";
import { openSessionsQuery, sessionQuery } from "./session.ts";
import { transport } from "./transport.ts";

export const factors = createClient(FactorService, transport);

/** Passkeys, authenticator app and recovery codes of the signed-in account. */
export const factorsQuery = {
  queryKey: ["factors"],
  queryFn: ({ signal }: { readonly signal: AbortSignal }) => factors.list({}, { signal }),
};

/** Refetches the factors after a change, and what depends on them. */
export async function refreshFactors(): Promise<void> {
  const queryKeys = [factorsQuery.queryKey, sessionQuery.queryKey, openSessionsQuery.queryKey];
  await Promise.all(queryKeys.map((queryKey) => queryClient.invalidateQueries({ queryKey })));
}

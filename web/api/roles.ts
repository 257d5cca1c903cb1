import { createClient } from "@connectrpc/connect";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { RoleService } from "../../gen/parley/console/v1/role_pb.js";
import { queryClient } from "./query-client.ts";
import { useMay } from "./session.ts";
import { transport } from "./transport.ts";

export const roles = createClient(RoleService, transport);

/** Custom roles, and all permissions that a role can have. Only for accounts that see all accounts. */
export const rolesQuery = queryOptions({
  queryKey: ["roles"],
  queryFn: ({ signal }) => roles.list({}, { signal }),
  staleTime: 30_000,
});

/** Refetches the roles after a change. */
export function refreshRoles(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: rolesQuery.queryKey });
}

/** Names of custom roles by ID, as far as the account sees them. */
export function useRoleNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...rolesQuery, enabled: useMay("accounts.read") });
  return new Map(data?.roles.map(({ id, name }) => [id, name]));
}

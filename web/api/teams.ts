import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { TeamService } from "../../gen/parley/console/v1/team_pb.js";
import { accountsQuery } from "./accounts.ts";
import { loadPages } from "./pages.ts";
import { queryClient } from "./query-client.ts";
import { sessionQuery } from "./session.ts";
import { transport } from "./transport.ts";

export const teams = createClient(TeamService, transport);

/** All teams, for administrators; those of the signed-in account for others. */
export const teamsQuery = queryOptions({
  queryKey: ["teams"],
  async queryFn({ signal }) {
    const pages = await loadPages((pageToken) => teams.list({ pageToken }, { signal }));
    return pages.flatMap((page) => page.teams);
  },
});

/** The members of a team. */
export function membersQuery(teamId: string) {
  return queryOptions({
    queryKey: ["teams", "members", teamId],
    queryFn: async ({ signal }) => (await teams.listMembers({ teamId }, { signal })).members,
  });
}

/** Refetches teams, members and the session after a change: it may concern the signed-in account. */
export async function refreshTeams(): Promise<void> {
  const keys = [teamsQuery.queryKey, accountsQuery.queryKey, sessionQuery.queryKey];
  await Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })));
}

import { createClient } from "@connectrpc/connect";
import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { AccountRole, type Account } from "../../gen/parley/console/v1/account_pb.js";
import type { TeamMembership } from "../../gen/parley/console/v1/team_pb.js";
import { type GetSessionResponse, type Session, SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { roleName } from "../format/roles.ts";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

/** Client for sign-up, sign-in and sign-out. */
export const sessions = createClient(SessionService, transport);

/** The current session, and the sign-up mode. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) => sessions.getSession({}, { signal }),
  staleTime: 60_000,
  // The user may have signed in in another tab.
  refetchOnWindowFocus: ({ state }) => (state.data?.session === undefined ? "always" : true),
});

/** Returns the signed-in account. Only for pages inside a session. */
export function useAccount(): Account {
  const account = useQuery(sessionQuery).data?.session?.account;
  if (account === undefined) throw new TypeError("useAccount needs a signed-in session");
  return account;
}

/** Returns the name of the signed-in account's role. Only for pages inside a session. */
export function useRoleName(): string {
  const account = useAccount();
  const custom = useQuery(sessionQuery).data?.session?.customRoleName;
  return custom || roleName(account, new Map());
}

/** Returns the teams of the signed-in account. Only for pages inside a session. */
export function useTeams(): readonly TeamMembership[] {
  return useQuery(sessionQuery).data?.session?.teams ?? [];
}

/**
 * Returns the permissions of the signed-in account in all accounts and for the installation, such as `audit.read`. Only
 * for pages inside a session.
 */
export function usePermissions(): readonly string[] {
  return useQuery(sessionQuery).data?.session?.permissions ?? NONE;
}

const NONE: readonly string[] = [];

/** Whether the signed-in account has this permission. */
export function useMay(permission: string): boolean {
  return usePermissions().includes(permission);
}

/** Whether the signed-in account can change and use its own keys and settings: viewers cannot. */
export function mayWrite({ role, customRoleBase }: Account): boolean {
  return (role === AccountRole.CUSTOM ? customRoleBase : role) !== AccountRole.VIEWER;
}

/** The invitation of a link. */
export function invitationQuery(token: string) {
  return queryOptions({
    queryKey: ["invitation", token],
    queryFn: ({ signal }) => sessions.getInvitation({ token }, { signal }),
    enabled: token !== "",
    staleTime: 60_000,
  });
}

/** Caches a new session, or one with a new cookie. */
export function enter(session: Session | undefined): void {
  queryClient.setQueryData(sessionQuery.queryKey, (known): GetSessionResponse | undefined =>
    known && session ? { ...known, session, needsOwner: false } : known,
  );
}

/** Open sessions of the account. */
export const openSessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => (await sessions.listSessions({}, { signal })).sessions,
});

export function useSignOut() {
  return useMutation({
    mutationFn: () => sessions.signOut({}),
    async onSuccess({ providerUrl }) {
      if (providerUrl !== "") location.assign(providerUrl);
      else await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    },
  });
}

const clearCallbacks = new Set<() => void>();

/** Registers a callback for the end of a session, to clear state outside the query cache. */
export function onForget(forget: () => void): void {
  clearCallbacks.add(forget);
}

/** Clears all data of the ended session: the next one may belong to another account. */
export function forgetSession(): void {
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
  for (const forget of clearCallbacks) forget();
}

import { createClient } from "@connectrpc/connect";
import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { AccountRole, type Account } from "../../gen/parley/console/v1/account_pb.js";
import { type GetSessionResponse, type Session, SessionService } from "../../gen/parley/console/v1/session_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

/** Signing up, in and out. */
export const sessions = createClient(SessionService, transport);

/** Who is signed in, and who may sign up. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) => sessions.getSession({}, { signal }),
  staleTime: 60_000,
  // Somebody may have signed in in another tab.
  refetchOnWindowFocus: ({ state }) => (state.data?.session === undefined ? "always" : true),
});

/** The account that is signed in. Only for pages that are shown to nobody else. */
export function useAccount(): Account {
  const account = useQuery(sessionQuery).data?.session?.account;
  if (account === undefined) throw new TypeError("a page for those who are signed in is shown to somebody else");
  return account;
}

/** Whether an account may see and change those of others. */
export function isAdministrator({ role }: Account): boolean {
  return role === AccountRole.ADMINISTRATOR;
}

/** What is known of the invitation of a link. */
export function invitationQuery(token: string) {
  return queryOptions({
    queryKey: ["invitation", token],
    queryFn: ({ signal }) => sessions.getInvitation({ token }, { signal }),
    enabled: token !== "",
    staleTime: 60_000,
  });
}

/** Takes note of a session that has just begun, or got a new cookie. */
export function enter(session: Session | undefined): void {
  queryClient.setQueryData(sessionQuery.queryKey, (known): GetSessionResponse | undefined =>
    known && session ? { ...known, session, needsAdministrator: false } : known,
  );
}

/** Where the account is signed in. */
export const openSessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => (await sessions.listSessions({}, { signal })).sessions,
});

/** Ends the session. */
export function useSignOut() {
  return useMutation({
    mutationFn: () => sessions.signOut({}),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey }),
  });
}

const forgetters = new Set<() => void>();

/** Calls back when a session is over: for what a page keeps besides what it has asked for. */
export function onForget(forget: () => void): void {
  forgetters.add(forget);
}

/** Forgets what was shown in a session that is over: the next one may be somebody else's. */
export function forgetSession(): void {
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
  for (const forget of forgetters) forget();
}

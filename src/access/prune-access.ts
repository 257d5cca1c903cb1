import { BROWSER_KNOWN_MS } from "./known-browsers.ts";
import type { ThrottleStore } from "./account-store.ts";
import type { PruneContext } from "./context.ts";
import { pruneInvitations } from "./invitations.ts";
import { pruneSessions } from "./sessions.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Retention of security events. */
const EVENTS_KEPT_MS = 400 * DAY_MS;
/** Retention of throttles; older ones have no effect. */
const THROTTLES_KEPT_MS = DAY_MS;
/** Limits of counts and events for unknown addresses, so that guessing cannot grow the database. */
const MOST_THROTTLES = 50_000;
const MOST_ANONYMOUS_EVENTS = 10_000;
/** Limit of events of an account by type: a flood of changes does not remove the account's events of other types. */
const MOST_EVENTS_OF_TYPE = 10_000;

/** Number of removed rows of each kind. */
export type Pruned = Readonly<Record<"sessions" | "browsers" | "invitations" | "events" | "throttles", number>>;

/** Removes rows that have expired by `nowMs`. Call it every few minutes, in any of the processes on a store. */
export async function pruneAccess(context: PruneContext & { readonly throttles: ThrottleStore }): Promise<Pruned> {
  const { store, nowMs, throttles } = context;
  return {
    sessions: await pruneSessions(context),
    browsers: await store.pruneBrowsers(nowMs - BROWSER_KNOWN_MS),
    invitations: await pruneInvitations(context),
    events: await store.pruneEvents({
      beforeMs: nowMs - EVENTS_KEPT_MS,
      mostAnonymous: MOST_ANONYMOUS_EVENTS,
      mostOfType: MOST_EVENTS_OF_TYPE,
    }),
    throttles: await throttles.prune({ beforeMs: nowMs - THROTTLES_KEPT_MS, most: MOST_THROTTLES }),
  };
}

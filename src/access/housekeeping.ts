import type { ThrottleStore } from "./account-store.ts";
import type { AccessContext } from "./context.ts";
import { pruneInvitations } from "./invitations.ts";
import { pruneSessions } from "./sessions.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long security events can be looked up. */
const EVENTS_KEPT_MS = 400 * DAY_MS;
/** By then no throttle says anything any more. */
const THROTTLES_KEPT_MS = DAY_MS;

/** How many of each were removed. */
export interface Pruned {
  readonly sessions: number;
  readonly invitations: number;
  readonly events: number;
  readonly throttles: number;
}

/** Removes what has ended: to be called about once an hour, by any of the processes on a store. */
export async function pruneAccess(
  context: Pick<AccessContext, "store" | "clock"> & { readonly throttles: ThrottleStore },
): Promise<Pruned> {
  const { store, clock, throttles } = context;
  return {
    sessions: await pruneSessions(context),
    invitations: await pruneInvitations(context),
    events: await store.pruneEvents(clock.now() - EVENTS_KEPT_MS),
    throttles: await throttles.prune(clock.now() - THROTTLES_KEPT_MS),
  };
}

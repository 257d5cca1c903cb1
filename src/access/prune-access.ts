import { BROWSER_KNOWN_MS } from "./known-browsers.ts";
import type { ThrottleStore } from "./account-store.ts";
import { AUDIT_KEPT_MS, type AuditStore, MOST_AUDIT_ENTRIES } from "./audit-store.ts";
import type { PruneContext } from "./context.ts";
import { pruneInvitations } from "./invitations.ts";
import { pruneSessions } from "./sessions.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Transactions of one run. */
const MAX_PASSES = 100;
/** Retention of throttles; older ones have no effect. */
const THROTTLES_KEPT_MS = DAY_MS;
/** Limit of counts, so that guessing cannot grow the database. */
const MOST_THROTTLES = 50_000;

/** Number of removed rows of each kind. */
export type Pruned = Readonly<
  Record<"sessions" | "browsers" | "invitations" | "adminKeys" | "entries" | "throttles", number>
>;

/** Removes rows that have expired by `nowMs`. Call it every few minutes, in any of the processes on a store. */
export async function pruneAccess(
  context: PruneContext & { readonly throttles: ThrottleStore; readonly audit: Pick<AuditStore, "prune"> },
): Promise<Pruned> {
  const { store, nowMs, throttles, audit } = context;
  return {
    sessions: await pruneSessions(context),
    browsers: await store.pruneBrowsers(nowMs - BROWSER_KNOWN_MS),
    invitations: await pruneInvitations(context),
    // Kept as long as the audit log, whose entries name them.
    adminKeys: await store.pruneAdminKeys(nowMs - AUDIT_KEPT_MS),
    entries: await pruneAudit(audit, nowMs - AUDIT_KEPT_MS),
    throttles: await throttles.prune({ beforeMs: nowMs - THROTTLES_KEPT_MS, most: MOST_THROTTLES }),
  };
}

async function pruneAudit(audit: Pick<AuditStore, "prune">, beforeMs: number): Promise<number> {
  let pruned = 0;
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const count = await audit.prune({ beforeMs, most: MOST_AUDIT_ENTRIES });
    if (count === 0) break;
    pruned += count;
  }
  return pruned;
}

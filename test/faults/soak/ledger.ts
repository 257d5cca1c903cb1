import { type LedgerEntry, readLedger } from "../support/ledger.ts";
import type { SeenCompletion } from "./traffic.ts";

/** Prefix of IDs of requests before the measured period. */
export const BEFORE = "before-";

/**
 * Returns differences between the ledger and the callers: one entry per completion, with the outcome its caller saw.
 */
export async function findDifferences(dataDir: string, seen: readonly SeenCompletion[]): Promise<string[]> {
  const own = (await readLedger(dataDir)).filter(({ requestId }) => !requestId.startsWith(BEFORE));
  const entries = Map.groupBy(own, ({ requestId }) => requestId);
  const differences = seen.flatMap((one) => {
    const found = entries.get(one.requestId) ?? [];
    const difference = differ(one, found);
    return difference === undefined ? [] : [`${one.requestId}: ${difference}`];
  });
  const asked = new Set(seen.map(({ requestId }) => requestId));
  const foreign = [...entries.keys()].filter((requestId) => !asked.has(requestId));
  return [...differences, ...foreign.map((requestId) => `${requestId}: no caller asked for it`)];
}

function differ({ left, reply }: SeenCompletion, entries: readonly LedgerEntry[]): string | undefined {
  const [entry] = entries;
  if (entries.length > 1) return `${entries.length} entries`;
  // A cancelled request may not have been read, or may have been complete already.
  if (left) return undefined;
  if (entry === undefined) return "no entry";
  const served = reply?.complete === true;
  if (served !== (entry.outcome === "served"))
    return `${entry.outcome}, and its caller saw ${served ? "its end" : "none"}`;
  // The caller gets the counts of the serving attempt only; earlier ones are billed too.
  const isSum = entry.attempts > 1;
  return served && reply.usage !== entry.usage && !isSum
    ? `${entry.usage} tokens, and its caller got ${reply.usage}`
    : undefined;
}

import { type LedgerEntry, readLedger } from "../support/ledger.ts";
import type { SeenCompletion } from "./traffic.ts";

/** The IDs of requests that are made before the soak begin like this; they are none of its own. */
export const BEFORE = "before-";

/** Where the ledger and the callers differ, in words: each completion is in it once, as its caller saw it. */
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
  return [...differences, ...foreign.map((requestId) => `${requestId}: nobody asked for it`)];
}

function differ({ left, reply }: SeenCompletion, entries: readonly LedgerEntry[]): string | undefined {
  const [entry] = entries;
  if (entries.length > 1) return `${entries.length} entries`;
  // Whoever leaves may have left before the request was read, and may have missed an end that was already written.
  if (left) return undefined;
  if (entry === undefined) return "no entry";
  const served = reply?.complete === true;
  if (served !== (entry.outcome === "served"))
    return `${entry.outcome}, and its caller saw ${served ? "its end" : "none"}`;
  // Attempts before the one that served are booked beside it; its caller is told of that one.
  const isSum = entry.attempts > 1;
  return served && reply.usage !== entry.usage && !isSum
    ? `${entry.usage} tokens, and its caller was told ${reply.usage}`
    : undefined;
}

import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { openStore } from "../../../src/store/store.ts";
import type { SeenCompletion } from "./traffic.ts";

/** The IDs of requests that are made before the soak begin like this; they are none of its own. */
export const BEFORE = "before-";

/** What the ledger says of one request. */
interface Entry {
  readonly outcome: string;
  /** `prompt+completion`. */
  readonly usage: string;
}

/** Where the ledger and the callers differ, in words: each completion is in it once, as its caller saw it. */
export async function findDifferences(dataDir: string, seen: readonly SeenCompletion[]): Promise<string[]> {
  const entries = await readLedger(dataDir);
  const differences = seen.flatMap((one) => {
    const found = entries.get(one.requestId) ?? [];
    const difference = differ(one, found);
    return difference === undefined ? [] : [`${one.requestId}: ${difference}`];
  });
  const asked = new Set(seen.map(({ requestId }) => requestId));
  const foreign = [...entries.keys()].filter((requestId) => !asked.has(requestId));
  return [...differences, ...foreign.map((requestId) => `${requestId}: nobody asked for it`)];
}

function differ({ left, reply }: SeenCompletion, entries: readonly Entry[]): string | undefined {
  const [entry] = entries;
  if (entries.length > 1) return `${entries.length} entries`;
  // Whoever leaves may have left before the request was read, and may have missed an end that was already written.
  if (left) return undefined;
  if (entry === undefined) return "no entry";
  const served = reply?.complete === true;
  if (served !== (entry.outcome === "served"))
    return `${entry.outcome}, and its caller saw ${served ? "its end" : "none"}`;
  return served && reply.usage !== entry.usage
    ? `${entry.usage} tokens, and its caller was told ${reply.usage}`
    : undefined;
}

async function readLedger(dataDir: string): Promise<ReadonlyMap<string, readonly Entry[]>> {
  // Whoever closes the database brings into the table what was written in short.
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
  const database = new DatabaseSync(join(dataDir, "parley.db"), { readOnly: true });
  try {
    const sql = `select request_id, outcome, prompt_tokens, completion_tokens from completions
      where request_id not like '${BEFORE}%'`;
    const entries = new Map<string, Entry[]>();
    for (const row of database.prepare(sql).all()) {
      const requestId = String(row["request_id"]);
      const usage = `${Number(row["prompt_tokens"])}+${Number(row["completion_tokens"])}`;
      entries.set(requestId, [...(entries.get(requestId) ?? []), { outcome: String(row["outcome"]), usage }]);
    }
    return entries;
  } finally {
    database.close();
  }
}

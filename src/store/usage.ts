import { sql, type RawBuilder } from "kysely";
import type { LedgerStore, UsageGroup, UsageRow } from "../ledger/ledger-store.ts";
import { retryWhileBusy } from "./busy.ts";
import { chunksOf } from "./chunks.ts";
import type { Database } from "./database.ts";

const DAY_MS = 86_400_000;

/** What each group is told apart by. Days are counted since 1970: both databases divide integers to integers. */
const GROUPS: Readonly<Record<UsageGroup, RawBuilder<string | number>>> = {
  model: sql<string>`coalesce(served_model, requested_model)`,
  key: sql<string>`key_id`,
  account: sql<string>`account_id`,
  day: sql<number>`started_at_ms / ${sql.lit(DAY_MS)}`,
};

/** Adds up the ledger. */
export function createUsage(database: Database): LedgerStore["usage"] {
  return async ({ sinceMs, untilMs, by, accountId, keyId }) => {
    let sums = database.query
      .selectFrom("completions")
      .select([
        GROUPS[by].as("group"),
        sql<number>`count(*)`.as("completions"),
        sql<number>`sum(case when outcome = 'served' then 0 else 1 end)`.as("failed"),
        sql<number>`sum(partial)`.as("partial"),
        sql<number>`sum(estimated)`.as("estimated"),
        sql<number>`sum(prompt_tokens)`.as("prompt"),
        sql<number>`sum(cached_tokens)`.as("cached"),
        sql<number>`sum(completion_tokens)`.as("completion"),
        sql<number>`sum(reasoning_tokens)`.as("reasoning"),
        sql<number>`sum(image_tokens)`.as("image"),
        sql<number>`sum(cost_micro_usd)`.as("cost"),
      ])
      .where("started_at_ms", ">=", sinceMs)
      .where("started_at_ms", "<", untilMs)
      .groupBy(sql`1`);
    sums = by === "day" ? sums.orderBy(sql`1`) : sums.orderBy("cost", "desc").orderBy(sql`1`);
    if (accountId !== undefined) sums = sums.where("account_id", "=", accountId);
    if (keyId !== undefined) sums = sums.where("key_id", "=", keyId);
    const rows = await retryWhileBusy(() => sums.execute());
    const names = await findNames(
      database,
      by,
      rows.map(({ group }) => String(group)),
    );
    return rows.map((row): UsageRow => ({
      group: by === "day" ? new Date(Number(row.group) * DAY_MS).toISOString().slice(0, 10) : String(row.group),
      name: names.get(String(row.group)),
      completions: row.completions,
      failed: row.failed,
      partial: row.partial,
      estimated: row.estimated,
      promptTokens: row.prompt,
      cachedTokens: row.cached,
      completionTokens: row.completion,
      reasoningTokens: row.reasoning,
      imageTokens: row.image,
      costMicroUsd: row.cost,
    }));
  };
}

/** What people call keys and accounts; nothing for those that are gone. */
async function findNames(
  { query }: Database,
  by: UsageGroup,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (by !== "key" && by !== "account") return names;
  for (const chunk of chunksOf(ids)) {
    const found =
      by === "key"
        ? query.selectFrom("api_keys").select(["id", "name"]).where("id", "in", chunk)
        : query
            .selectFrom("accounts")
            .select(["id", sql<string>`coalesce(email, name)`.as("name")])
            .where("id", "in", chunk);
    for (const { id, name } of await retryWhileBusy(() => found.execute())) names.set(id, name);
  }
  return names;
}

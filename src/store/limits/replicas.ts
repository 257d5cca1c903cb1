import { LEASE_MS } from "../../limits/rates.ts";
import { type Database, skipLocked } from "../database.ts";

/** So many subjects that nobody uses are forgotten at a time. */
const FORGOTTEN_ROWS = 500;

/** Says that this replica is there, forgets what says nothing any more, and counts the replicas. */
export async function countReplicas(database: Database, name: string): Promise<number> {
  return database.transaction(async (transaction) => {
    const nowMs = await database.nowMs(transaction);
    const idle = transaction
      .selectFrom("rate_states")
      .select("subject")
      .where("idle_at_ms", "<", nowMs)
      .limit(FORGOTTEN_ROWS);
    await transaction.deleteFrom("rate_states").where("subject", "in", skipLocked(database, idle)).execute();
    const gone = transaction
      .selectFrom("replicas")
      .select("name")
      .where("seen_at_ms", "<", nowMs - LEASE_MS);
    await transaction.deleteFrom("replicas").where("name", "in", skipLocked(database, gone)).execute();
    await transaction
      .insertInto("replicas")
      .values({ name, seen_at_ms: nowMs })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ seen_at_ms: nowMs }))
      .execute();
    const { count } = await transaction
      .selectFrom("replicas")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("seen_at_ms", ">=", nowMs - LEASE_MS)
      .executeTakeFirstOrThrow();
    return count;
  });
}

import type { Kysely } from "kysely";
import type { SubjectState } from "../../limits/state.ts";
import { retryWhileBusy } from "../busy.ts";
import { chunksOf } from "../chunks.ts";
import { type Database, inCodeUnits, lockRows } from "../database.ts";
import type { Schema } from "../schema.ts";
import { compare } from "./spending.ts";

/** The states of these subjects that have a row, kept for this transaction; null for a row without a state. */
export async function lockStates(
  database: Database,
  transaction: Kysely<Schema>,
  subjects: readonly string[],
): Promise<Map<string, string | null>> {
  const found = new Map<string, string | null>();
  for (const chunk of chunksOf(subjects)) {
    const rows = transaction
      .selectFrom("rate_states")
      .select(["subject", "state"])
      .where("subject", "in", chunk)
      .orderBy(inCodeUnits(database, "subject"));
    for (const { subject, state } of await lockRows(database, rows).execute()) found.set(subject, state);
  }
  return found;
}

/** Writes states whose rows are kept by this transaction. */
export async function writeStates(
  transaction: Kysely<Schema>,
  states: ReadonlyMap<string, SubjectState>,
): Promise<void> {
  const rows = [...states]
    .toSorted(([a], [b]) => compare(a, b))
    .map(([subject, state]) => ({ subject, state: JSON.stringify(state), idle_at_ms: Math.ceil(state.idleAt) }));
  for (const chunk of chunksOf(rows)) {
    await transaction
      .insertInto("rate_states")
      .values(chunk)
      .onConflict((conflict) =>
        conflict.column("subject").doUpdateSet((is) => ({
          state: is.ref("excluded.state"),
          idle_at_ms: is.ref("excluded.idle_at_ms"),
        })),
      )
      .execute();
  }
}

/** Makes the rows of new subjects: outside any transaction, so that no two wait for each other's rows. */
export async function makeStates({ query }: Database, subjects: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(subjects)) {
    const made = query
      .insertInto("rate_states")
      .values(chunk.map((subject) => ({ subject, state: null, idle_at_ms: Number.MAX_SAFE_INTEGER })))
      .onConflict((conflict) => conflict.column("subject").doNothing());
    await retryWhileBusy(() => made.execute());
  }
}

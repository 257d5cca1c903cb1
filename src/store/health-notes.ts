import { type HealthNotes, MAX_NOTES, NOTE_LASTS_MS, readHealthNotes, writeHealthNote } from "../core/health-notes.ts";
import { type Database, skipLocked } from "./database.ts";

/** Notes about upstream models in the database, by its clock. */
export function createHealthNotes(database: Database, { replica }: { readonly replica: string }): HealthNotes {
  return {
    exchange: (note) =>
      database.transaction(async (transaction) => {
        const nowMs = await database.nowMs(transaction);
        const row = { note: writeHealthNote(note), written_at_ms: nowMs };
        const old = transaction
          .selectFrom("health_notes")
          .select("name")
          .where("written_at_ms", "<", nowMs - NOTE_LASTS_MS)
          .where("name", "!=", replica);
        await transaction.deleteFrom("health_notes").where("name", "in", skipLocked(database, old)).execute();
        await transaction
          .insertInto("health_notes")
          .values({ name: replica, ...row })
          .onConflict((conflict) => conflict.column("name").doUpdateSet(row))
          .execute();
        const others = await transaction
          .selectFrom("health_notes")
          .select("note")
          .where("written_at_ms", ">=", nowMs - NOTE_LASTS_MS)
          .where("name", "!=", replica)
          .limit(MAX_NOTES)
          .execute();
        return readHealthNotes(others.map(({ note: text }) => text));
      }),
  };
}

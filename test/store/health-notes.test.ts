import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { NOTE_LASTS_MS } from "../../src/core/health-notes.ts";
import { createHealthNotes } from "../../src/store/health-notes.ts";
import { openDatabase } from "../../src/store/open-database.ts";

it("a note of a replica that writes no more is not read, and removed", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-notes-"));
  const { database } = await openDatabase({ dataDir, databaseUrl: undefined });
  onTestFinished(async () => {
    await database.close();
    rmSync(dataDir, { recursive: true });
  });
  await createHealthNotes(database, { replica: "gone" }).exchange({ down: ["a/m"], up: ["b/m"] });
  const { query } = database;
  await query
    .updateTable("health_notes")
    .set(({ eb }) => ({ written_at_ms: eb("written_at_ms", "-", NOTE_LASTS_MS + 1) }))
    .execute();
  expect(await createHealthNotes(database, { replica: "here" }).exchange({ down: [], up: [] })).toEqual([]);
  expect(await query.selectFrom("health_notes").select("name").execute()).toEqual([{ name: "here" }]);
});

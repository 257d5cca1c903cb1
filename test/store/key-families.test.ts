import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CompiledQuery } from "kysely";
import { describe, expect, it } from "vitest";
import { createKey, revokeKey, rotateKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { workingKeys } from "../../src/store/access/working-keys.ts";
import { openDatabase } from "../../src/store/open-database.ts";
import { openTestStore } from "../support/test-store.ts";

/** Rotations that a developer can make in some days. */
const ROTATIONS = 30_000;
/** Much more than it takes, and much less than comparing each key with all others. */
const LIMIT_MS = 1_000;

it("a key that was rotated thousands of times is revoked as fast as others", { timeout: 60_000 }, async () => {
  const { store, dataDir } = await openTestStore();
  const keys = { store: store.keys, clock: systemClock };
  const first = await createKey(keys, { name: "a" });
  const latest = await rotateKey(keys, first.record.id, { grace: "0" });
  insertBetween(join(dataDir, "parley.db"), first.record.id, latest.record.id);
  const beganMs = performance.now();
  expect(await revokeKey(keys, latest.record.id)).toEqual([latest.record.id]);
  await expect(revokeKey(keys, latest.record.id)).rejects.toThrow("has been revoked already");
  expect(performance.now() - beganMs).toBeLessThan(LIMIT_MS);
});

describe("the keys that work", () => {
  it.each([
    [{ accountIds: ["acct_a", "acct_b"] }, "api_keys_account_id_working (account_id=? AND expires_at_ms"],
    [{ familyId: "key_a" }, "api_keys_line_id_working (line_id=? AND expires_at_ms"],
  ])("of %o are found without reading those that have ended", async (of, index) => {
    const { dataDir, store } = await openTestStore();
    await store.close();
    const { database } = await openDatabase({ dataDir, databaseUrl: undefined });
    const { sql, parameters } = workingKeys(of, 1).compile(database.query);
    const plan = await database.query.executeQuery<{ readonly detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    );
    await database.close();
    const searches = plan.rows.map(({ detail }) => detail).filter((detail) => detail.includes("INDEX"));
    for (const comparison of ["=?)", ">?)"])
      expect(searches).toContainEqual(`SEARCH api_keys USING INDEX ${index}${comparison}`);
    expect(searches.filter((search) => !search.includes(index)).every((search) => search.includes("(id=?)"))).toBe(
      true,
    );
  });
});

/** Inserts keys that have expired, each the successor of the one before. */
function insertBetween(file: string, first: string, latest: string): void {
  const database = new DatabaseSync(file);
  database.exec("pragma busy_timeout = 5000; begin");
  const row = database.prepare("select * from api_keys where id = ?").get(first)!;
  const columns = Object.keys(row);
  const insert = database.prepare(`insert into api_keys (${columns.join()}) values (${columns.map(() => "?").join()})`);
  const idOf = (at: number): string => (at === ROTATIONS ? latest : `key_${at}`);
  database.prepare("update api_keys set replaced_by = ? where id = ?").run(idOf(0), first);
  for (let at = 0; at < ROTATIONS; at++) {
    const own = { id: idOf(at), hash: `hash ${at}`, line_id: first, replaced_by: idOf(at + 1) };
    insert.run(...Object.values({ ...row, ...own }));
  }
  database.exec("commit");
  database.close();
}

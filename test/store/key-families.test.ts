import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { createKey, revokeKey, rotateKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
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

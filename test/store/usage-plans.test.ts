import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompiledQuery, type RawBuilder } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/store/database.ts";
import { keysWithUse } from "../../src/store/access/key-store.ts";
import { latencyPoints } from "../../src/store/ledger/latency.ts";
import { openDatabase } from "../../src/store/open-database.ts";
import { sumsOf } from "../../src/store/ledger/usage-sums.ts";

const dataDir = mkdtempSync(join(tmpdir(), "parley-usage-plans-"));
const SPAN = { sinceMs: 0, untilMs: 1 } as const;
let database: Database;

beforeAll(async () => {
  ({ database } = await openDatabase({ dataDir, databaseUrl: undefined }));
});
afterAll(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

/** The steps of a query's plan that read a table. */
function readsOf(query: RawBuilder<unknown>): Promise<string[]> {
  return planOf(query.compile(database.query));
}

async function planOf({ sql, parameters }: CompiledQuery): Promise<string[]> {
  const plan = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
  const { rows } = await database.query.executeQuery<{ detail: string }>(plan);
  return rows.map(({ detail }) => detail).filter((step) => /(completions|usage_hours|usage_minutes)\b/.test(step));
}

describe("usage reports use an index for", () => {
  it("the last use of a key", async () => {
    expect(await planOf(keysWithUse(database).compile())).toEqual([
      "SEARCH completions USING COVERING INDEX completions_key_end (key_id=?)",
    ]);
  });

  it.each([
    [{}, "completions_end (ended_at_ms>? AND ended_at_ms<?)"],
    [{ model: "m" }, "completions_end (ended_at_ms>? AND ended_at_ms<?)"],
    [{ accountId: "a" }, "completions_account_end (account_id=? AND ended_at_ms>? AND ended_at_ms<?)"],
    [{ keyId: "k", accountId: "a" }, "completions_key_end (key_id=? AND ended_at_ms>? AND ended_at_ms<?)"],
  ] as const)("latencies of requests with %o", async (filter, index) => {
    const query = latencyPoints(database, { ...SPAN, step: "day", ...filter });
    expect(await readsOf(query)).toEqual([`SEARCH completions USING INDEX ${index}`]);
  });

  it.each([
    [{}, /usage_hours_account \(account_id=\? AND hour_ms>\? AND hour_ms<\?\)$/],
    [{ by: "key" }, /sqlite_autoindex_usage_hours_1 \(hour_ms>\? AND hour_ms<\?\)$/],
    [{ keyId: "k" }, /usage_hours_key \(key_id=\? AND hour_ms>\? AND hour_ms<\?\)$/],
    [{ accountId: "a" }, /usage_hours_account \(account_id=\? AND hour_ms>\? AND hour_ms<\?\)$/],
    [{ grain: "minute" }, /usage_minutes_account \(account_id=\? AND minute_ms>\? AND minute_ms<\?\)$/],
    [{ grain: "minute", keyId: "k" }, /usage_minutes_key \(key_id=\? AND minute_ms>\? AND minute_ms<\?\)$/],
  ] as const)("sums with %o", async (filter, index) => {
    const query = { ...SPAN, by: "model", step: "day", ...filter } as const;
    expect(await readsOf(sumsOf(query, { shown: ["m"], others: "sum" }))).toEqual([expect.stringMatching(index)]);
  });

  it.each([
    ["key", /usage_hours_key \(key_id=\? AND hour_ms>\? AND hour_ms<\?\)$/],
    ["account", /usage_hours_account \(account_id=\? AND hour_ms>\? AND hour_ms<\?\)$/],
  ] as const)("sums of some of each %s", async (by, index) => {
    const query = { ...SPAN, by, step: "day" } as const;
    expect(await readsOf(sumsOf(query, { shown: ["a", "b"], others: "none" }))).toEqual([expect.stringMatching(index)]);
  });
});

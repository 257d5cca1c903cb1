import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompiledQuery, sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { UsageQuery } from "../../src/ledger/usage-store.ts";
import type { Database } from "../../src/store/database.ts";
import { sumEntries } from "../../src/store/ledger/entry-sums.ts";
import { createLedgerCompaction, createLedgerStore } from "../../src/store/ledger/ledger-store.ts";
import { windowEnd } from "../../src/store/ledger/log-pages.ts";
import { openDatabase } from "../../src/store/open-database.ts";
import { entry, NOON } from "./contracts/entries.ts";

const dataDir = mkdtempSync(join(tmpdir(), "parley-entry-sums-"));
/** Ends of completions, one a second: the second half with eight tags of their own each, the first with one that all have. */
const ENDS = Array.from({ length: 20 }, (_, at) => NOON + at * 1_000);
const ALL = { sinceMs: 0, untilMs: 2 * NOON, by: "tag", step: "all", maxGroups: 100 } as const satisfies UsageQuery;
let database: Database;

beforeAll(async () => {
  ({ database } = await openDatabase({ dataDir, databaseUrl: undefined }));
  const compaction = createLedgerCompaction(database);
  const ledger = createLedgerStore({
    database,
    reports: database,
    compaction,
    databaseUrl: undefined,
    begunFiles: undefined,
  });
  await ledger.insert(
    ENDS.map((endedAtMs, at) => {
      const tags = at < 10 ? ["old"] : Array.from({ length: 8 }, (_, tag) => `${at}-${tag}`);
      return entry({ startedAtMs: NOON - 1, endedAtMs, attribution: { session: `s${at}`, tags } });
    }),
  );
  await compaction.close();
});
afterAll(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

describe("a report of single completions", () => {
  it("by tag adds up a bounded number of tags, and says since when", async () => {
    const { sums, total, cutSinceMs } = await sumEntries(database, ALL, { window: 30 });
    // The fourth has the 32nd tag.
    expect(cutSinceMs).toBe(ENDS[16]);
    expect(total?.completions).toBe(4);
    expect(sums).toHaveLength(32);
  });

  it.each([
    { ...ALL, by: "session" },
    { ...ALL, by: "model", tag: "10-1" },
  ] as const)("%o adds up a bounded number of completions", async (query) => {
    expect(await sumEntries(database, query, { window: 20 })).toMatchObject({ cutSinceMs: undefined });
    expect(await sumEntries(database, query, { window: 12 })).toMatchObject({ cutSinceMs: ENDS[7] });
  });

  it("is whole within its bound", async () => {
    const { sums, total, cutSinceMs } = await sumEntries(database, { ...ALL, maxGroups: 1 }, { window: 90 });
    expect(cutSinceMs).toBeUndefined();
    expect(total?.completions).toBe(20);
    // A completion with several tags counts for each of them.
    expect(sums.map(({ name, completions }) => [name, completions])).toEqual([
      ["old", 10],
      ["", 80],
    ]);
  });

  it("finds the end of its tags in the order of an index", async () => {
    const weight = sql<number>`json_array_length(tags)`;
    const ends = windowEnd(database, { accountId: "a", sinceMs: 1, untilMs: 2 }, { window: 30, weight });
    const { sql: text, parameters } = ends.compile();
    const plan = CompiledQuery.raw(`explain query plan ${text}`, [...parameters]);
    const { rows } = await database.query.executeQuery<{ detail: string }>(plan);
    const steps = rows.map(({ detail }) => detail).join("\n");
    expect(steps).toContain(
      "SEARCH completions USING INDEX completions_account_end (account_id=? AND ended_at_ms>? AND",
    );
    expect(steps).not.toContain("TEMP B-TREE");
  });
});

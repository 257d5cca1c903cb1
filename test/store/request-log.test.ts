import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogPosition, LogQuery } from "../../src/ledger/ledger-store.ts";
import type { Database } from "../../src/store/database.ts";
import { createLedgerCompaction, createLedgerStore } from "../../src/store/ledger/ledger-store.ts";
import { COMPLETIONS, logPage, namesakes, REFUSALS, windowEnd } from "../../src/store/ledger/log-pages.ts";
import { createRequestLog } from "../../src/store/ledger/request-log.ts";
import { openDatabase } from "../../src/store/open-database.ts";
import { historyOf, writeHistory } from "../support/history.ts";

const dataDir = mkdtempSync(join(tmpdir(), "parley-log-"));
const HISTORY = { count: 500, untilMs: Date.UTC(2026, 10, 21) };
const AFTER = { endedAtMs: HISTORY.untilMs, completionId: "x" };
let database: Database;

beforeAll(async () => {
  ({ database } = await openDatabase({ dataDir, databaseUrl: undefined }));
  const compaction = createLedgerCompaction(database);
  await writeHistory(
    createLedgerStore({ database, reports: database, compaction, databaseUrl: undefined, begunFiles: undefined }),
    HISTORY,
  );
  await compaction.close();
});
afterAll(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

describe("a page of the log with few matching entries", () => {
  it("examines at most the window, and the next page continues after it", async () => {
    const log = createRequestLog(database, { window: 40 });
    const query: LogQuery = { limit: 3, outcome: "failed", model: "beta-3-pro-image-preview" };
    const pages: number[] = [];
    const found: string[] = [];
    let after: LogPosition | undefined;
    do {
      const page = await log.list({ ...query, after });
      pages.push(page.entries.length);
      found.push(...page.entries.map(({ completionId }) => completionId));
      after = page.next;
    } while (after !== undefined);
    expect(pages).toContain(0);
    expect(pages.length).toBeGreaterThanOrEqual(500 / 41);
    const all = [...historyOf(HISTORY)].filter((entry) => isFailureOf(entry, query.model)).toReversed();
    expect(found).toEqual(all.map(({ completionId }) => completionId));
  });

  it("ends at the beginning of its time span", async () => {
    const log = createRequestLog(database, { window: 40 });
    const sinceMs = [...historyOf(HISTORY)].at(-20)!.endedAtMs;
    const page = await log.list({ limit: 3, outcome: "internal", sinceMs });
    expect(page).toEqual({ entries: [], next: undefined });
  });
});

describe("every query of the log", () => {
  const steps = async (query: { compile(): CompiledQuery }): Promise<string[]> => {
    const { sql, parameters } = query.compile();
    const plan = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    const { rows } = await database.query.executeQuery<{ detail: string }>(plan);
    return rows.map(({ detail }) => detail);
  };
  const page = (query: Partial<LogQuery>) => steps(logPage(database, { limit: 50, ...query }, { fromMs: 5 }));

  it.each([
    [{}, "completions_end (ended_at_ms>?)"],
    [{ after: AFTER }, "completions_end (ended_at_ms>? AND ended_at_ms<?)"],
    [{ model: "m", outcome: "failed" }, "completions_end (ended_at_ms>?)"],
    [{ accountId: "a" }, "completions_account_end (account_id=? AND ended_at_ms>?)"],
    [{ accountId: "a", after: AFTER, model: "m" }, "completions_account_end (account_id=? AND ended_at_ms>?"],
    [{ keyId: "k" }, "completions_key_end (key_id=? AND ended_at_ms>?)"],
    [{ keyId: "k", after: AFTER, outcome: "cancelled" }, "completions_key_end (key_id=? AND ended_at_ms>?"],
  ] as const)("%o reads in the order of an index", async (query, index) => {
    const [first = "", ...others] = await page(query);
    expect(first).toContain(`SEARCH completions USING INDEX ${index}`);
    // Only entries of the same millisecond are sorted.
    expect(others.filter((step) => !step.includes("LAST TERM OF ORDER BY"))).toEqual([]);
  });

  it("finds the end of its window in the index alone", async () => {
    for (const query of [{}, { accountId: "a" }, { keyId: "k", accountId: "a" }, { after: AFTER, sinceMs: 3 }]) {
      const [first, ...others] = await steps(windowEnd(database, { limit: 50, ...query }, { window: 100 }));
      expect(first).toContain("USING COVERING INDEX");
      expect(others).toEqual([]);
    }
  });

  it("finds a request by its ID", async () => {
    for (const table of [COMPLETIONS, REFUSALS]) {
      const plan = async (accountIds: readonly string[] | undefined): Promise<string> =>
        (await steps(namesakes(database, { table, requestId: "req", accountIds }))).join("\n");
      const search = `SEARCH ${table.name} USING INDEX ${table.name}_request (request_id=?)`;
      expect(await plan(undefined)).toContain(search);
      expect(await plan(["a", "b"])).toContain(search);
    }
  });
});

function isFailureOf(
  {
    outcome,
    requestedModel,
    servedModel,
  }: { outcome: string; requestedModel: string; servedModel?: string | undefined },
  model: string | undefined,
): boolean {
  return outcome !== "served" && (requestedModel === model || servedModel === model);
}

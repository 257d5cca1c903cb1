import type { NewLedgerEntry } from "../core/ledger.ts";
import { insertEntries } from "./ledger-insert.ts";
import type { LedgerSegmentRow } from "./schema.ts";
import type { Statements } from "./statements.ts";

/*
 * SQLite's way into the ledger. An entry costs its tables and their indexes thirty times what it costs to be kept in one
 * row with all others of its batch, and only that row has to be durable before a caller sees the end of an answer. Rows of
 * entries ("segments") are folded into the tables a moment later, many at a time, and before anybody reads them. The row
 * goes in the transaction that writes its entries: whoever does it, and whenever it is killed, each is written once.
 */

/** How many segments one transaction folds at most: others wait meanwhile. */
const MAX_SEGMENTS = 100;

/** Keeps entries, given as the JSON of their list, as one segment. */
export async function appendSegment(statements: Statements, entries: string): Promise<void> {
  await statements.run("insert into ledger_segments (entries) values (?)", [entries]);
}

/** Folds the oldest segments, and answers whether there may be more. */
export async function foldSegments(statements: Statements): Promise<boolean> {
  const oldest = "select id from ledger_segments order by id limit ?";
  const taken = `delete from ledger_segments where id in (${oldest}) returning entries`;
  const segments = await statements.run<Pick<LedgerSegmentRow, "entries">>(taken, [MAX_SEGMENTS]);
  if (segments.length === 0) return false;
  await insertEntries(
    statements,
    segments.flatMap(({ entries }) => JSON.parse(entries) as NewLedgerEntry[]),
  );
  return segments.length === MAX_SEGMENTS;
}

/** Folds all of them: whatever is to be decided by what was spent must know it. */
export async function foldAllSegments(statements: Statements): Promise<void> {
  while (await foldSegments(statements));
}

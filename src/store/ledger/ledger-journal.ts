import type { NewLedgerEntry } from "../../core/ledger.ts";
import { insertEntries } from "./ledger-insert.ts";
import type { LedgerSegmentRow } from "../schema.ts";
import { forUpdate, type Statements } from "../statements.ts";

/*
 * The way into the ledger. An entry costs its tables and their indexes thirty times what it costs to be kept in one row
 * with all others of its batch, and only that row has to be durable before a caller sees the end of an answer. It locks
 * nothing that other processes write, while the sums of a key and an hour are the same rows for all of them, and kept
 * until the commit has reached the disk. Rows of entries ("segments") are folded into the tables a moment later, many at a
 * time, and before anybody reads them. The row goes in the transaction that writes its entries: whichever process does it,
 * and whenever it is killed, each is written once.
 */

/** How many segments one transaction folds at most: others wait meanwhile. */
const MAX_SEGMENTS = 100;

/** Keeps entries, given as the JSON of their list, as one segment. */
export async function appendSegment(statements: Statements, entries: string): Promise<void> {
  await statements.run("insert into ledger_segments (entries) values (?)", [entries]);
}

/** Folds the oldest segments, and answers whether there may be more. */
export async function compactJournal(statements: Statements): Promise<boolean> {
  // A fold that is lost in a crash of the server leaves its segments, and is done again.
  if (statements.kind === "postgres") await statements.run("set local synchronous_commit = off", []);
  const oldest = `select id from ledger_segments order by id limit ? ${forUpdate(statements)}`;
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
export async function compactWholeJournal(statements: Statements): Promise<void> {
  while (await compactJournal(statements));
}

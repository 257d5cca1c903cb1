import { monthOf, periodAt } from "../../core/clock.ts";
import { type NewLedgerEntry, PROCESS_LOST } from "../../core/ledger.ts";
import { isAttributed } from "../../limits/attributed.ts";
import { compare, releaseHolds, SpendingChanges } from "../limits/spending.ts";
import type { BudgetHoldRow, CompletionRow, LedgerSegmentRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, type Statements } from "../statements.ts";
import { createPartitions, findLeavingMonths } from "../postgres/partitions.ts";
import { toCompletionRow } from "./ledger-rows.ts";
import { addUsage, minutesFromMs } from "./usage-hours.ts";

/** Resolution of `last_used_at_ms` in a key's row, whose update costs a page; the ledger entry has the exact time. */
const USE_NOTED_MS = 60_000;

/** An entry and its row. */
interface Written {
  readonly entry: NewLedgerEntry;
  readonly row: CompletionRow;
}

/** Changes that an insertion makes beside its rows, and the start of the minutes that are summed up. */
interface Insertion {
  readonly changes: SpendingChanges;
  readonly fromMs: number;
}

/** Numbers of entries that are in the tables since, and that were left out because their month is being removed. */
export interface Inserted {
  readonly written: number;
  readonly left: number;
}

/**
 * Inserts entries that are not in the tables yet, releases their budget holds, adds them to the spending of their keys,
 * accounts, end users and sessions and to the usage of their minutes and hours, and updates when the keys were last used. Of an entry whose month is being
 * removed only the hold is settled.
 */
export async function insertEntries(statements: Statements, entries: readonly NewLedgerEntry[]): Promise<Inserted> {
  const changes = new SpendingChanges();
  const fromMs = await minutesFromMs(statements);
  const distinct = new Map(entries.map((entry) => [entry.completionId, entry]));
  const all = [...distinct.values()].map((entry): Written => ({ entry, row: toCompletionRow(entry) }));
  const isLeaving = await findLeavingMonths(statements);
  const leaving = all.filter(({ row }) => isLeaving(row.started_at_ms));
  const written = await insertNew(statements, { all: all.filter((each) => !leaving.includes(each)), changes, fromMs });
  const ids = [...written, ...leaving].map(({ row }) => row.id);
  const held = await releaseHolds(statements, { ids, changes });
  // An entry without a row may come again; its hold does not.
  const settled = leaving.filter(({ entry }) => held.has(entry.completionId));
  for (const each of [...written, ...settled])
    addSpent(changes, {
      ...each,
      holds: held.get(each.entry.completionId) ?? [],
      spentMicroUsd: each.entry.costMicroUsd,
    });
  await changes.apply(statements);
  const rows = written.map(({ row }) => row);
  await addUsage(statements, rows, { fromMs });
  await noteUse(statements, rows);
  return { written: written.length, left: leaving.length };
}

interface Spent extends Written {
  /** Holds that the entry ends. */
  readonly holds: readonly BudgetHoldRow[];
  /** Negative for an entry that is taken out. */
  readonly spentMicroUsd: number;
}

/** Adds what an entry has cost to all its budgets. */
function addSpent(changes: SpendingChanges, { entry, row, holds, spentMicroUsd }: Spent): void {
  const { keyId, keyFamilyId = keyId, accountId, budgets = [], startedAtMs, endedAtMs } = entry;
  const spent = { spent_micro_usd: spentMicroUsd, held_micro_usd: 0, at_ms: endedAtMs };
  // The period of a hold, if there is one: by the database's clock, not the replica's.
  const month = holds.find(({ subject }) => !isAttributed(subject))?.month ?? spendingMonthOf(row);
  for (const subject of [`key:${keyFamilyId}`, `account:${accountId}`]) changes.add({ subject, month, ...spent });
  for (const { subject, period } of budgets) {
    // The entry of a lost process, and the one that replaces it, are of the same period: that of their start.
    const isOfLost = row.outcome === PROCESS_LOST || row.spending_month !== null;
    const hold = isOfLost ? undefined : holds.find((one) => one.subject === subject);
    changes.add({ subject, month: hold?.month ?? periodAt(startedAtMs, period), ...spent });
  }
}

function spendingMonthOf({ spending_month, started_at_ms }: CompletionRow): string {
  return spending_month ?? monthOf(started_at_ms);
}

/**
 * Inserts entries, each once, in the same order in all processes, and answers which ones were new. An entry replaces that of a
 * lost process.
 */
async function insertNew(
  statements: Statements,
  { all, ...context }: Insertion & { readonly all: readonly Written[] },
): Promise<Written[]> {
  const sorted = all.toSorted((left, right) => compare(left.row.id, right.row.id));
  const startsMs = sorted.map(({ row }) => row.started_at_ms);
  await createPartitions(statements, {
    completions: startsMs,
    usage_hours: startsMs,
    usage_minutes: startsMs.filter((startMs) => startMs >= context.fromMs),
  });
  const written = await insertRowsOf(statements, sorted);
  const known = sorted.filter((each) => !written.includes(each));
  if (known.length === 0) return written;
  const replaceable = await takeOutLost(statements, { entries: known, ...context });
  return [...written, ...(await insertRowsOf(statements, replaceable))];
}

/** Inserts the rows that do not exist yet, and answers which ones. */
async function insertRowsOf(statements: Statements, all: readonly Written[]): Promise<Written[]> {
  const inserted = await insertRows<"completions", { readonly id: string }>(statements, {
    into: "completions",
    rows: all.map(({ row }) => row),
    // By the primary key, which in PostgreSQL also has the start: an entry is written again with the same one.
    ending: "on conflict do nothing returning id",
  });
  const ids = new Set(inserted.map(({ id }) => id));
  return all.filter(({ row }) => ids.has(row.id));
}

/**
 * Removes the entries that were written for these completions when their process was lost, with what they added to spending
 * and usage. Answers which completions had one: the new entries are added to the same months.
 */
async function takeOutLost(
  statements: Statements,
  { entries, changes, fromMs }: Insertion & { readonly entries: readonly Written[] },
): Promise<Written[]> {
  const removed = new Map<string, CompletionRow>();
  for (const batch of batchesOf(statements, entries)) {
    const which = `id in ${listOf(batch.length)} and outcome = ?`;
    const sql = `delete from completions where ${which} returning *`;
    const rows = await statements.run<CompletionRow>(sql, [...batch.map(({ row }) => row.id), PROCESS_LOST]);
    for (const row of rows) removed.set(row.id, row);
  }
  await addUsage(statements, [...removed.values()], { fromMs, times: -1 });
  const replaceable: Written[] = [];
  for (const { entry, row } of entries) {
    const lost = removed.get(row.id);
    if (lost === undefined) continue;
    addSpent(changes, { entry, row: lost, holds: [], spentMicroUsd: -lost.cost_micro_usd });
    replaceable.push({ entry, row: { ...row, spending_month: spendingMonthOf(lost) } });
  }
  return replaceable;
}

/**
 * Updates the keys' time of last use, which outlives their entries. Keys are sorted here, because an entry without cost has
 * locked no row of spending before.
 */
async function noteUse(statements: Statements, rows: readonly CompletionRow[]): Promise<void> {
  const latest = new Map<string, number>();
  for (const { key_id, ended_at_ms } of rows) latest.set(key_id, Math.max(latest.get(key_id) ?? 0, ended_at_ms));
  const sorted = [...latest].toSorted(([left], [right]) => compare(left, right));
  for (const batch of batchesOf(statements, sorted)) {
    const uses = batch.map(() => "(?, cast(? as bigint))").join(", ");
    // Both databases name the columns of a values list like this.
    const update = `update api_keys set last_used_at_ms = uses.column2 from (values ${uses}) as uses`;
    const isNews = `id = uses.column1 and (last_used_at_ms is null or last_used_at_ms <= uses.column2 - ${USE_NOTED_MS})`;
    if (statements.kind === "sqlite") await statements.run(`${update} where ${isNews}`, batch.flat());
    else {
      // PostgreSQL would update the rows in any order; locking them first keeps one order.
      const taken = `select id as taken_id from api_keys where id in ${listOf(batch.length)} order by id collate "C"`;
      const sql = `with taken as (${taken} ${forUpdate(statements)}) ${update}, taken where id = taken_id and ${isNews}`;
      await statements.run(sql, [...batch.map(([id]) => id), ...batch.flat()]);
    }
  }
}

/*
 * The journal of the ledger. Inserting an entry into the tables and their indexes costs thirty times as much as storing it
 * with its batch in one row (a "segment"), and only that row has to be durable before a caller sees the end of an answer.
 * The segment locks no row that other processes write, while the sums of a key and an hour are the same rows for all
 * processes and stay locked until the commit has reached the disk. Segments are compacted into the tables shortly
 * afterwards, many at a time, and before any read. Each is deleted in the transaction that writes its entries, so that
 * every entry is written once, whichever process does it and whenever it is killed.
 */

/** Segments compacted per transaction: other transactions wait meanwhile. */
const MAX_SEGMENTS = 100;

/** Time that a compaction waits for each lock, in which it holds others: less than decisions on budgets wait. */
const LOCK_MS = 500;

/** Appends entries, given as the JSON of their list, as one segment. */
export async function appendSegment(statements: Statements, entries: string): Promise<void> {
  await statements.run("insert into ledger_segments (entries) values (?)", [entries]);
}

/** Result of a compaction. */
export interface Compacted {
  /** Whether there may be more segments. */
  readonly hasMore: boolean;
  /** Entries that were left out because their month is being removed. */
  readonly dropped: number;
}

/** Compacts the oldest segments, or the one with this ID. */
export async function compactJournal(statements: Statements, segmentId: number | undefined): Promise<Compacted> {
  // A compaction lost in a crash of the server leaves its segments and is repeated. So does one that waits for a lock.
  if (statements.kind === "postgres")
    await statements.run(`set local synchronous_commit = off; set local lock_timeout = ${LOCK_MS}`, []);
  const oldest = `select id from ledger_segments order by id limit ? ${forUpdate(statements)}`;
  const which = segmentId === undefined ? `id in (${oldest})` : "id = ?";
  const taken = `delete from ledger_segments where ${which} returning entries`;
  const segments = await statements.run<Pick<LedgerSegmentRow, "entries">>(taken, [segmentId ?? MAX_SEGMENTS]);
  if (segments.length === 0) return { hasMore: false, dropped: 0 };
  const { left } = await insertEntries(
    statements,
    segments.flatMap(({ entries }) => JSON.parse(entries) as NewLedgerEntry[]),
  );
  return { hasMore: segments.length === MAX_SEGMENTS, dropped: left };
}

/** Compacts all segments, before a decision that depends on spending. */
export async function compactWholeJournal(statements: Statements): Promise<void> {
  while ((await compactJournal(statements, undefined)).hasMore);
}

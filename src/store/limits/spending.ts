import { isAttributed } from "../../limits/attributed.ts";
import type { BudgetHoldRow, SpendingRow } from "../schema.ts";
import { batchesOf, forUpdate, insertRows, listOf, nowMs, type Statements } from "../statements.ts";

/*
 * Lock order of all transactions, against deadlocks: completions, holds, spending, usage sums, keys; within each table by
 * name.
 */

/** Change of the spent and held money of one subject and period. */
export interface SpendingChange extends Omit<SpendingRow, "kept_until_ms" | "holder_name" | "limit_micro_usd"> {
  /**
   * Time of the change, from which the life of a row of an end user or a session is counted. Default: the row lives as long
   * as before.
   */
  readonly at_ms?: number;
  /** The end user or session. Default: it stays as it is. */
  readonly name?: string | undefined;
}

/** Sums the changes of each subject and period in one transaction. */
export class SpendingChanges {
  readonly #changes = new Map<string, SpendingRow>();

  add({ subject, month, spent_micro_usd, held_micro_usd, at_ms, name }: SpendingChange): void {
    const key = spendingName({ subject, month });
    const before = this.#changes.get(key);
    const keptUntilMs = at_ms === undefined ? null : keptUntil({ subject, month }, at_ms);
    this.#changes.set(key, {
      subject,
      month,
      spent_micro_usd: (before?.spent_micro_usd ?? 0) + spent_micro_usd,
      held_micro_usd: (before?.held_micro_usd ?? 0) + held_micro_usd,
      kept_until_ms: keptUntilMs ?? before?.kept_until_ms ?? null,
      holder_name: name ?? before?.holder_name ?? null,
      limit_micro_usd: null,
    });
  }

  /** Writes the changes that are not zero. */
  async apply(statements: Statements): Promise<void> {
    const changed = [...this.#changes.values()]
      .filter(({ spent_micro_usd, held_micro_usd }) => spent_micro_usd !== 0 || held_micro_usd !== 0)
      .toSorted(bySubject);
    await insertRows(statements, {
      into: "spending",
      rows: changed,
      ending: `on conflict (subject, month) do update set
        spent_micro_usd = spending.spent_micro_usd + excluded.spent_micro_usd,
        held_micro_usd = spending.held_micro_usd + excluded.held_micro_usd,
        kept_until_ms = case when excluded.kept_until_ms > spending.kept_until_ms
          then excluded.kept_until_ms else spending.kept_until_ms end,
        holder_name = coalesce(spending.holder_name, excluded.holder_name)`,
    });
  }
}

/** Primary key of a row of spending. */
export type SpendingKey = Pick<SpendingRow, "subject" | "month">;

/** The key as one text. */
export function spendingName({ subject, month }: SpendingKey): string {
  return `${subject} ${month}`;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * When a row that is used now may be removed; null: never. Rows of end users and sessions outlast their periods; a session ends when
 * nothing was held of its budget for 30 days. Whole days, so that few updates change the indexed column.
 */
export function keptUntil({ subject, month }: SpendingKey, atMs: number): number | null {
  if (!isAttributed(subject)) return null;
  const days = month === "session" ? 30 : month.length === "2026-11".length ? 32 : 2;
  return (Math.ceil(atMs / DAY_MS) + days) * DAY_MS;
}

/** Removes rows whose time is over, at most `limit`, and answers their number. */
export async function pruneSpending(statements: Statements, limit: number): Promise<number> {
  const which = "kept_until_ms <= ? and held_micro_usd = 0 order by subject, month limit ?";
  const ended = `select subject, month from spending where ${which} ${forUpdate(statements, "skip locked")}`;
  const sql = `delete from spending where (subject, month) in (${ended}) returning subject`;
  return (await statements.run(sql, [await nowMs(statements), limit])).length;
}

/**
 * Removes the holds of these completions, and subtracts them from the subjects' held money. Runs in the ledger's
 * transaction, so that money is held or spent, never both or neither. Answers the holds of each completion.
 */
export async function releaseHolds(
  statements: Statements,
  { ids, changes }: { readonly ids: readonly string[]; readonly changes: SpendingChanges },
): Promise<ReadonlyMap<string, readonly BudgetHoldRow[]>> {
  const released: BudgetHoldRow[] = [];
  for (const batch of batchesOf(statements, ids)) {
    const which = `where id in ${listOf(batch.length)}`;
    const held = `select * from budget_holds ${which} order by id, subject ${forUpdate(statements)}`;
    const holds = await statements.run<BudgetHoldRow>(held, batch);
    if (holds.length === 0) continue;
    await statements.run(`delete from budget_holds ${which}`, batch);
    takeOff(holds, changes);
    released.push(...holds);
  }
  return Map.groupBy(released, ({ id }) => id);
}

/** Subtracts these holds from the held money. */
export function takeOff(holds: readonly BudgetHoldRow[], changes: SpendingChanges): void {
  for (const { subject, month, amount_micro_usd } of holds)
    changes.add({ subject, month, spent_micro_usd: 0, held_micro_usd: -amount_micro_usd });
}

/** Order in which rows of spending are locked. */
export function bySubject(left: SpendingKey, right: SpendingKey): number {
  return compare(left.subject, right.subject) || compare(left.month, right.month);
}

/** Compares by code units: the same order in every process, whatever its locale. */
export function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

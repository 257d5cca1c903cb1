import { MINUTES_KEPT_MS, STEP_MS } from "../../ledger/usage-store.ts";
import type { CompletionRow, UsageHourRow, UsageMinuteRow, UsageSumsRow } from "../schema.ts";
import { compare } from "../limits/spending.ts";
import { batchesOf, insertRows, listOf, nowMs, type Statements } from "../statements.ts";

/**
 * Limit of the model in a usage row: PostgreSQL refuses keys that are too long for an index page, and callers choose model
 * names.
 */
const MAX_MODEL_LENGTH = 500;

/** The summed columns of a row. */
export const SUMS = [
  "completions",
  "partial",
  "estimated",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "image_tokens",
  "cost_micro_usd",
  "own_cost_micro_usd",
  "refused",
] as const satisfies readonly (keyof UsageSumsRow)[];

/** The tables of sums, in the order in which transactions write to them, with the column of a row's start. */
export const USAGE_TABLES = {
  minute: { table: "usage_minutes", column: "minute_ms" },
  hour: { table: "usage_hours", column: "hour_ms" },
} as const;

type Grain = keyof typeof USAGE_TABLES;

/** Account and key of the rows with the sums of all accounts, so that their reports need not read a row of each key. */
export const ALL = "";

/** Addition to the sums of the minute and the hour of a time. */
export interface UsageAddition extends UsageSumsRow {
  readonly atMs: number;
}

/** Start of the minutes that are still written, by the database's clock. */
export async function minutesFromMs(statements: Statements): Promise<number> {
  return (await nowMs(statements)) - MINUTES_KEPT_MS;
}

/** Adds completions to the sums of the minutes and hours in which they started, `times` 1 or -1. */
export async function addUsage(
  statements: Statements,
  completions: readonly CompletionRow[],
  { fromMs, times = 1 }: { readonly fromMs: number; readonly times?: 1 | -1 },
): Promise<void> {
  await addSums(statements, completions.map(toAddition), { fromMs, times });
}

/**
 * Adds to the sums of minutes (from `fromMs` on) and hours: a row for each combination of the key columns and one of all accounts, in
 * the same order in all processes. The partitions exist.
 */
export async function addSums(
  statements: Statements,
  additions: readonly UsageAddition[],
  { fromMs, times = 1 }: { readonly fromMs: number; readonly times?: 1 | -1 },
): Promise<void> {
  for (const grain of ["minute", "hour"] as const) {
    const within = grain === "hour" ? additions : additions.filter(({ atMs }) => atMs >= fromMs);
    const sums = sumUp(within, STEP_MS[grain]);
    const rows = times === 1 ? sums : sums.map(negated);
    if (rows.length === 0) continue;
    await insertSums(statements, grain, rows);
    if (times === -1) await removeEmpty(statements, grain, new Set(rows.map(({ startMs }) => startMs)));
  }
}

type StartedSums = UsageSumsRow & { readonly startMs: number };

/** Sums of each step and combination, and of all accounts, sorted by their names. */
function sumUp(additions: readonly UsageAddition[], stepMs: number): StartedSums[] {
  const sums = new Map<string, Writable<StartedSums>>();
  for (const addition of additions) {
    const startMs = addition.atMs - (addition.atMs % stepMs);
    for (const isAll of [false, true]) {
      const { model, outcome } = addition;
      const [accountId, keyId] = isAll ? [ALL, ALL] : [addition.account_id, addition.key_id];
      const name = `${startMs} ${accountId} ${keyId} ${outcome} ${model}`;
      const known = sums.get(name);
      if (known !== undefined) for (const sum of SUMS) known[sum] += addition[sum];
      else {
        const { atMs: _, ...columns } = addition;
        sums.set(name, { ...columns, account_id: accountId, key_id: keyId, startMs });
      }
    }
  }
  return [...sums].toSorted(([left], [right]) => compare(left, right)).map(([, row]) => row);
}

/** Mutable, because most additions are to an existing row, which is cheapest in place. */
type Writable<R> = { -readonly [C in keyof R]: R[C] };

function negated(row: StartedSums): StartedSums {
  return { ...row, ...Object.fromEntries(SUMS.map((sum) => [sum, -row[sum]])) };
}

async function insertSums(statements: Statements, grain: Grain, rows: readonly StartedSums[]): Promise<void> {
  const { table, column } = USAGE_TABLES[grain];
  const added = SUMS.map((sum) => `${sum} = ${table}.${sum} + excluded.${sum}`).join(", ");
  const ending = `on conflict (${column}, account_id, key_id, model, outcome) do update set ${added}`;
  const written = rows.map(({ startMs, ...row }) => ({ [column]: startMs, ...row }) as UsageHourRow & UsageMinuteRow);
  await insertRows(statements, { into: table, rows: written, ending });
}

/** Removes rows that sum up nothing. */
async function removeEmpty(statements: Statements, grain: Grain, startsMs: ReadonlySet<number>): Promise<void> {
  const { table, column } = USAGE_TABLES[grain];
  for (const batch of batchesOf(statements, [...startsMs])) {
    const empty = `completions = 0 and refused = 0 and ${column} in ${listOf(batch.length)}`;
    await statements.run(`delete from ${table} where ${empty}`, batch);
  }
}

function toAddition(row: CompletionRow): UsageAddition {
  return {
    atMs: row.started_at_ms,
    account_id: row.account_id,
    key_id: row.key_id,
    model: usageModel(row.served_model ?? row.requested_model),
    outcome: row.outcome,
    completions: 1,
    partial: row.partial,
    estimated: row.estimated,
    prompt_tokens: row.prompt_tokens,
    cached_tokens: row.cached_tokens,
    completion_tokens: row.completion_tokens,
    reasoning_tokens: row.reasoning_tokens,
    image_tokens: row.image_tokens,
    cost_micro_usd: row.cost_micro_usd,
    own_cost_micro_usd: row.own_cost_micro_usd,
    refused: 0,
  };
}

/** A model in the sums: of a completion the served one, or the requested one when none answered. */
function usageModel(model: string): string {
  return model.length <= MAX_MODEL_LENGTH ? model : model.slice(0, MAX_MODEL_LENGTH).toWellFormed();
}

import { STEP_MS } from "../../ledger/usage-store.ts";
import type { CompletionRow, UsageHourRow } from "../schema.ts";
import { compare } from "../limits/spending.ts";
import { batchesOf, insertRows, listOf, type Statements } from "../statements.ts";

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
] as const satisfies readonly (keyof UsageHourRow)[];

const ADD_UP = `on conflict (hour_ms, account_id, key_id, model, outcome) do update set ${SUMS.map(
  (sum) => `${sum} = usage_hours.${sum} + excluded.${sum}`,
).join(", ")}`;

/** Account and key of the rows with the sums of all accounts, so that their reports need not read a row of each key. */
export const ALL = "";

/**
 * Adds completions to the sums of the hours in which they started, `times` 1 or -1: a row for each combination of the key
 * columns and one of all accounts, in the same order in all processes.
 */
export async function addUsage(
  statements: Statements,
  completions: readonly CompletionRow[],
  times: 1 | -1 = 1,
): Promise<void> {
  const hours = new Map<string, Writable<UsageHourRow>>();
  for (const row of completions) {
    const hourMs = row.started_at_ms - (row.started_at_ms % STEP_MS.hour);
    const model = usageModel(row);
    for (const each of [row, { ...row, account_id: ALL, key_id: ALL }]) {
      const name = `${hourMs} ${each.account_id} ${each.key_id} ${each.outcome} ${model}`;
      const sums = hours.get(name);
      if (sums === undefined) hours.set(name, firstOf(each, { hourMs, model }));
      else addTo(sums, each);
    }
  }
  const sorted = [...hours].toSorted(([left], [right]) => compare(left, right));
  const rows = sorted.map(([, row]) => (times === 1 ? row : negated(row)));
  await insertRows(statements, { into: "usage_hours", rows, ending: ADD_UP });
  if (times === 1 || rows.length === 0) return;
  const hourMs = [...new Set(rows.map(({ hour_ms }) => hour_ms))];
  for (const batch of batchesOf(statements, hourMs))
    await statements.run(`delete from usage_hours where completions = 0 and hour_ms in ${listOf(batch.length)}`, batch);
}

function negated(row: UsageHourRow): UsageHourRow {
  return { ...row, ...Object.fromEntries(SUMS.map((sum) => [sum, -row[sum]])) };
}

/** Mutable, because most entries are added to an existing row, which is cheapest in place. */
type Writable<R> = { -readonly [C in keyof R]: R[C] };

function firstOf(
  row: CompletionRow,
  { hourMs, model }: { readonly hourMs: number; readonly model: string },
): UsageHourRow {
  const { account_id, key_id, outcome, partial, estimated } = row;
  const { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, image_tokens } = row;
  const { cost_micro_usd, own_cost_micro_usd } = row;
  return {
    hour_ms: hourMs,
    account_id,
    key_id,
    model,
    outcome,
    completions: 1,
    partial,
    estimated,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    reasoning_tokens,
    image_tokens,
    cost_micro_usd,
    own_cost_micro_usd,
  };
}

function addTo(sums: Writable<UsageHourRow>, row: CompletionRow): void {
  sums.completions += 1;
  sums.partial += row.partial;
  sums.estimated += row.estimated;
  sums.prompt_tokens += row.prompt_tokens;
  sums.cached_tokens += row.cached_tokens;
  sums.completion_tokens += row.completion_tokens;
  sums.reasoning_tokens += row.reasoning_tokens;
  sums.image_tokens += row.image_tokens;
  sums.cost_micro_usd += row.cost_micro_usd;
  sums.own_cost_micro_usd += row.own_cost_micro_usd;
}

/** The model of a completion in the sums: the served one, or the requested one when none answered. */
function usageModel({ served_model, requested_model }: CompletionRow): string {
  const model = served_model ?? requested_model;
  return model.length <= MAX_MODEL_LENGTH ? model : model.slice(0, MAX_MODEL_LENGTH).toWellFormed();
}

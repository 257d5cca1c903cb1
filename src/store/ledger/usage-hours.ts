import { STEP_MS } from "../../ledger/usage-store.ts";
import type { CompletionRow, UsageHourRow } from "../schema.ts";
import { compare } from "../limits/spending.ts";
import { insertRows, type Statements } from "../statements.ts";

/** PostgreSQL refuses rows whose key is too long for a page of its index; callers' names for models may be longer. */
const MAX_MODEL_LENGTH = 500;

/** The sums of one hour besides what tells them apart. */
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
] as const satisfies readonly (keyof UsageHourRow)[];

const ADD_UP = `on conflict (hour_ms, account_id, key_id, model, outcome) do update set ${SUMS.map(
  (sum) => `${sum} = usage_hours.${sum} + excluded.${sum}`,
).join(", ")}`;

/** Adds completions to the sums of the hours in which they started: a row for each kind of them, in one order for all. */
export async function addUsage(statements: Statements, completions: readonly CompletionRow[]): Promise<void> {
  const hours = new Map<string, Writable<UsageHourRow>>();
  for (const row of completions) {
    const hourMs = row.started_at_ms - (row.started_at_ms % STEP_MS.hour);
    const model = usageModel(row);
    const name = `${hourMs} ${row.account_id} ${row.key_id} ${row.outcome} ${model}`;
    const sums = hours.get(name);
    if (sums === undefined) hours.set(name, firstOf(row, { hourMs, model }));
    else addTo(sums, row);
  }
  const sorted = [...hours].toSorted(([left], [right]) => compare(left, right));
  await insertRows(statements, { into: "usage_hours", rows: sorted.map(([, row]) => row), ending: ADD_UP });
}

/** Of many entries most are of a kind that there is: they are added in place, which costs the least. */
type Writable<R> = { -readonly [C in keyof R]: R[C] };

function firstOf(
  row: CompletionRow,
  { hourMs, model }: { readonly hourMs: number; readonly model: string },
): UsageHourRow {
  const { account_id, key_id, outcome, partial, estimated } = row;
  const { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, image_tokens, cost_micro_usd } = row;
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
}

/** The model that a completion counts for: the one that answered, or the requested one when none did. */
function usageModel({ served_model, requested_model }: CompletionRow): string {
  const model = served_model ?? requested_model;
  return model.length <= MAX_MODEL_LENGTH ? model : model.slice(0, MAX_MODEL_LENGTH).toWellFormed();
}

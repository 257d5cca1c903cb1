import { STEP_MS } from "../ledger/usage-store.ts";
import type { CompletionRow, UsageHourRow } from "./schema.ts";
import { compare } from "./spending.ts";
import { insertRows, type Statements } from "./statements.ts";

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
  const hours = new Map<string, UsageHourRow>();
  for (const row of completions) {
    const hourMs = row.started_at_ms - (row.started_at_ms % STEP_MS.hour);
    const model = usageModel(row);
    const name = `${hourMs} ${row.account_id} ${row.key_id} ${row.outcome} ${model}`;
    const before = hours.get(name);
    hours.set(name, {
      hour_ms: hourMs,
      account_id: row.account_id,
      key_id: row.key_id,
      model,
      outcome: row.outcome,
      completions: (before?.completions ?? 0) + 1,
      partial: (before?.partial ?? 0) + row.partial,
      estimated: (before?.estimated ?? 0) + row.estimated,
      prompt_tokens: (before?.prompt_tokens ?? 0) + row.prompt_tokens,
      cached_tokens: (before?.cached_tokens ?? 0) + row.cached_tokens,
      completion_tokens: (before?.completion_tokens ?? 0) + row.completion_tokens,
      reasoning_tokens: (before?.reasoning_tokens ?? 0) + row.reasoning_tokens,
      image_tokens: (before?.image_tokens ?? 0) + row.image_tokens,
      cost_micro_usd: (before?.cost_micro_usd ?? 0) + row.cost_micro_usd,
    });
  }
  const sorted = [...hours].toSorted(([left], [right]) => compare(left, right));
  await insertRows(statements, { into: "usage_hours", rows: sorted.map(([, row]) => row), ending: ADD_UP });
}

/** The model that a completion counts for: the one that answered, or the requested one when none did. */
function usageModel({ served_model, requested_model }: CompletionRow): string {
  const model = served_model ?? requested_model;
  return model.length <= MAX_MODEL_LENGTH ? model : model.slice(0, MAX_MODEL_LENGTH).toWellFormed();
}

import type { RefusalCount, RefusedRequest } from "../../ledger/refusal-store.ts";
import { createPartitions } from "../postgres/partitions.ts";
import type { RefusalRow } from "../schema.ts";
import { insertRows, type Statements } from "../statements.ts";
import { clean } from "./ledger-rows.ts";
import { addSums, minutesFromMs, type UsageAddition } from "./usage-hours.ts";

/** Counts and samples that are added together. */
export interface Refusals {
  readonly counts: readonly RefusalCount[];
  readonly samples: readonly RefusedRequest[];
}

/** Adds counts of refused requests to the sums of usage, and inserts samples that are not there yet. */
export async function addRefusals(statements: Statements, { counts, samples }: Refusals): Promise<void> {
  if (statements.kind === "postgres") await statements.run("set local synchronous_commit = off", []);
  const timesMs = counts.map(({ atMs }) => atMs);
  const fromMs = await minutesFromMs(statements);
  await createPartitions(statements, {
    usage_hours: timesMs,
    usage_minutes: timesMs.filter((atMs) => atMs >= fromMs),
    refusals: samples.map(({ entry }) => entry.endedAtMs),
  });
  await addSums(statements, counts.map(toAddition), { fromMs });
  await insertRows(statements, {
    into: "refusals",
    rows: samples.map(toRow),
    ending: "on conflict do nothing",
  });
}

function toAddition({ atMs, accountId, keyId, model, outcome, refused }: RefusalCount): UsageAddition {
  return {
    atMs,
    account_id: accountId,
    key_id: keyId,
    model,
    outcome,
    completions: 0,
    partial: 0,
    estimated: 0,
    prompt_tokens: 0,
    cached_tokens: 0,
    completion_tokens: 0,
    reasoning_tokens: 0,
    image_tokens: 0,
    cost_micro_usd: 0,
    own_cost_micro_usd: 0,
    refused,
  };
}

function toRow({ entry, message }: RefusedRequest): RefusalRow {
  return {
    id: entry.completionId,
    ended_at_ms: Math.round(entry.endedAtMs),
    request_id: clean(entry.requestId),
    account_id: entry.accountId,
    key_id: entry.keyId,
    requested_model: clean(entry.requestedModel),
    outcome: entry.outcome,
    message: clean(message),
    // JSON escapes NUL.
    entry: JSON.stringify(entry),
  };
}

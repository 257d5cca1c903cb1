import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import { causeOf } from "../../../src/core/error-reason.ts";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import type { FailureCode } from "../../../src/core/failure.ts";
import { FAILURE_TABLE } from "../../../src/inbound/failure-table.ts";
import { openStore } from "../../../src/store/store.ts";
import { promiseOf } from "../../support/faults/body.ts";
import { DEAD_MODEL } from "./caller-plan.ts";
import { type Case, type Difference, inOrder, lastCall } from "./judge.ts";
import type { ToldFailure } from "./reply.ts";

/** The compared fields of a ledger entry. */
export interface Entry {
  readonly requestId: string;
  readonly outcome: "served" | FailureCode;
  readonly served: string | null;
  readonly attempts: readonly { readonly model: string; readonly outcome: string }[];
  readonly prompt: number;
  readonly completion: number;
  readonly costMicroUsd: number;
  readonly estimated: boolean;
}

/** The ledger of a stopped product, and its budgets. */
export interface Books {
  readonly entries: ReadonlyMap<string, readonly Entry[]>;
  /** Total cost of all entries. */
  readonly costMicroUsd: number;
  /** Spending of each subject with a budget. */
  readonly spent: readonly {
    readonly subject: string;
    readonly spentMicroUsd: number;
    readonly heldMicroUsd: number;
  }[];
  readonly holds: number;
}

/** Reads the database. */
export async function readBooks(dataDir: string): Promise<Books> {
  // The closed database has compacted its pending entries.
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
  const database = new DatabaseSync(join(dataDir, "parley.db"), { readOnly: true });
  try {
    const entries = new Map<string, Entry[]>();
    let costMicroUsd = 0;
    for (const row of database.prepare("select * from completions").all()) {
      const entry: Entry = {
        requestId: String(row["request_id"]),
        outcome: row["outcome"] as Entry["outcome"],
        served: row["served_model"] as string | null,
        attempts: JSON.parse(String(row["attempts"])) as Entry["attempts"],
        prompt: Number(row["prompt_tokens"]),
        completion: Number(row["completion_tokens"]),
        costMicroUsd: Number(row["cost_micro_usd"]),
        estimated: row["estimated"] === 1,
      };
      costMicroUsd += entry.costMicroUsd;
      entries.set(entry.requestId, [...(entries.get(entry.requestId) ?? []), entry]);
    }
    const spent = database.prepare("select * from spending").all();
    return {
      entries,
      costMicroUsd,
      spent: spent.map((row) => ({
        subject: String(row["subject"]),
        spentMicroUsd: Number(row["spent_micro_usd"]),
        heldMicroUsd: Number(row["held_micro_usd"]),
      })),
      holds: database.prepare("select id from budget_holds").all().length,
    };
  } finally {
    database.close();
  }
}

/** Price per token in micro-USD. */
export const PRICE = { input: 3, output: 7 } as const;

/** Upper bound of an answer's tokens, and of an estimate. */
export const MAX_OUTPUT_TOKENS = 4_000;

/** Returns the differences between a completion's entries and what caller and upstream saw. */
export function auditEntry(seen: Case, entries: readonly Entry[]): Difference[] {
  const { plan, reply, calls } = seen;
  // A deadline can pass before the request is admitted.
  const hasFailed = reply.end === "failed" && plan.deadlineMs === undefined;
  const isAdmitted = calls.length > 0 || reply.end === "complete" || hasFailed;
  const differences =
    entries.length > 1 || (isAdmitted && entries.length === 0)
      ? [`${entries.length} entries`]
      : entries.flatMap((entry) => [
          ...auditOutcome(seen, entry),
          ...auditAttempts(seen, entry),
          ...auditMoney(seen, entry),
        ]);
  return differences.map((what) => ({ kind: "ledger", request: plan.request, what }));
}

function auditOutcome(seen: Case, { outcome, served }: Entry): string[] {
  const { reply } = seen;
  const last = lastCall(seen);
  const found: string[] = [];
  if (outcome === "internal") found.push("outcome internal");
  if (reply.end === "complete" && outcome !== "served") found.push(`complete, but the ledger has ${outcome}`);
  if (reply.end === "failed" && (outcome === "served" || !isRowOf(outcome, reply.failure!)))
    found.push(`error ${JSON.stringify(reply.failure)}, but the ledger has ${outcome}`);
  if (
    reply.end === "left" &&
    outcome === "served" &&
    (last === undefined || promiseOf(last.plan, last).complete === "no")
  )
    found.push("served without an answer");
  if (reply.text !== "" && served !== last?.model)
    found.push(`the ledger has served model ${served}, expected ${last?.model}`);
  return found;
}

/** Whether this error matches the failure table for the ledger's outcome. */
function isRowOf(code: FailureCode, { http, type, code: word, grpc, reason }: ToldFailure): boolean {
  const row = FAILURE_TABLE[code];
  if (grpc !== undefined)
    return row.grpc === grpc && causeOf(ErrorReason[reason as keyof typeof ErrorReason])?.code === code;
  const isOverload = word === "upstream_overloaded" && code === "upstream_unavailable";
  return (http === undefined || http === row.http) && type === row.type && (isOverload || word === row.code);
}

/** Every upstream call must be an attempt of the entry, with the matching outcome. */
function auditAttempts(seen: Case, { attempts }: Entry): string[] {
  const made = attempts.filter(({ model, outcome }) => model !== DEAD_MODEL && outcome !== "skipped");
  const { calls } = seen;
  const found: string[] = [];
  let at = 0;
  for (const call of inOrder(seen)) {
    while (at < made.length && made[at]!.model !== call.model) at += 1;
    const attempt = made[at];
    if (attempt === undefined) return [`a call of ${call.model} without an attempt`];
    at += 1;
    const { complete } = promiseOf(call.plan, call);
    // Two calls of one model may have arrived in another order.
    const isOnly = calls.filter(({ model }) => model === call.model).length === 1;
    if (attempt.outcome === "served" && complete === "no" && isOnly)
      found.push(`a served attempt of ${call.model} without a complete answer`);
  }
  return found;
}

/**
 * The tokens must be those of the last call plus those of uncounted earlier attempts, or an estimate of what the caller
 * can have received.
 */
function auditMoney(seen: Case, entry: Entry): string[] {
  const { reply } = seen;
  const { prompt, completion, costMicroUsd, estimated } = entry;
  const found: string[] = [];
  if (costMicroUsd !== prompt * PRICE.input + completion * PRICE.output) found.push(`costs ${costMicroUsd}`);
  const usage = lastCall(seen)?.plan.usage;
  const isCounted = prompt === usage?.prompt && completion === usage?.completion;
  const holdsCount = usage !== undefined && prompt >= usage.prompt && completion >= usage.completion;
  const isFree = prompt === 0 && completion === 0;
  if (!estimated && !isCounted && !isFree) found.push(`counted ${prompt}+${completion} for ${JSON.stringify(usage)}`);
  if (isFree && (entry.outcome === "served" || reply.text !== "")) found.push("no cost for an answer");
  const least = Math.min(Math.ceil(reply.text.length / 4), MAX_OUTPUT_TOKENS);
  if (estimated && reply.text !== "" && !holdsCount && completion < least)
    found.push(`estimated at ${completion} tokens for ${reply.text.length} characters`);
  return found;
}

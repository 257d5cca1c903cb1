import {
  addLatencies,
  type AttemptCount,
  type ReplicaState,
  STATE_LASTS_MS,
  type StepLatencies,
} from "../../ledger/target-history.ts";
import { STEP_MS } from "../../ledger/usage-store.ts";
import { compare } from "../limits/spending.ts";
import type { TargetAttemptsRow, TargetLatenciesRow } from "../schema.ts";
import { forUpdate, insertRows, nowMs, type Statements } from "../statements.ts";
import { HALF_HOUR_MS, LATENCY_COLUMNS, toLatenciesRow } from "./latency-columns.ts";

/** Limit of a target's name in a row: PostgreSQL refuses keys that are too long for an index page. */
const MAX_TARGET_LENGTH = 500;

/** Adds counts of attempts to their minutes and hours, and their latencies to their half hours, replaces the state of a process, and removes those of processes that have ended. */
export async function writeTargets(
  statements: Statements,
  { counts, state }: { readonly counts: readonly AttemptCount[]; readonly state: ReplicaState },
): Promise<void> {
  if (statements.kind === "postgres") await statements.run("set local synchronous_commit = off", []);
  await insertRows(statements, {
    into: "target_attempts",
    rows: sumUp(counts),
    ending: `on conflict (step_ms, target, start_ms, outcome) do update
      set attempts = target_attempts.attempts + excluded.attempts`,
  });
  await insertRows(statements, {
    into: "target_latencies",
    rows: latenciesOf(counts),
    ending: `on conflict (target, start_ms) do update
      set ${LATENCY_COLUMNS.map((column) => `${column} = target_latencies.${column} + excluded.${column}`).join(", ")}`,
  });
  const writtenAtMs = await nowMs(statements);
  await insertRows(statements, {
    into: "replica_states",
    rows: [{ name: state.replica, written_at_ms: writtenAtMs, state: JSON.stringify(state) }],
    ending: "on conflict (name) do update set written_at_ms = excluded.written_at_ms, state = excluded.state",
  });
  const old = `select name from replica_states where written_at_ms < ? ${forUpdate(statements, "skip locked")}`;
  await statements.run(`delete from replica_states where name in (${old})`, [writtenAtMs - STATE_LASTS_MS]);
}

/** The rows of minutes and hours, in the same order in all processes. */
function sumUp(counts: readonly AttemptCount[]): TargetAttemptsRow[] {
  const rows = new Map<string, TargetAttemptsRow>();
  for (const stepMs of [STEP_MS.minute, STEP_MS.hour])
    for (const { atMs, target: name, outcome, attempts } of counts) {
      const startMs = atMs - (atMs % stepMs);
      const target = storedTarget(name);
      const key = `${stepMs} ${startMs} ${outcome} ${target}`;
      const sum = (rows.get(key)?.attempts ?? 0) + attempts;
      rows.set(key, { step_ms: stepMs, target, start_ms: startMs, outcome, attempts: sum });
    }
  return [...rows].toSorted(([left], [right]) => compare(left, right)).map(([, row]) => row);
}

/** The rows of half hours, in the same order in all processes. */
function latenciesOf(counts: readonly AttemptCount[]): TargetLatenciesRow[] {
  const sums = new Map<string, StepLatencies>();
  for (const { atMs: exactMs, target: name, latencies } of counts) {
    if (latencies === undefined) continue;
    const atMs = exactMs - (exactMs % HALF_HOUR_MS);
    const target = storedTarget(name);
    const key = `${target} ${atMs}`;
    sums.set(key, { atMs, target, ...addLatencies(sums.get(key), latencies)! });
  }
  return [...sums].toSorted(([left], [right]) => compare(left, right)).map(([, sum]) => toLatenciesRow(sum));
}

function storedTarget(name: string): string {
  return name.length <= MAX_TARGET_LENGTH ? name : name.slice(0, MAX_TARGET_LENGTH).toWellFormed();
}

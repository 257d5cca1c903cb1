import { chain, type ChainLink, type UnchainedEntry } from "../../access/audit-entry.ts";
import { fromSecurityEvent } from "../../access/security-events.ts";
import type { SecurityEventRow } from "../schema.ts";
import { chunksOf, forUpdate, insertRows, listOf, type Statements } from "../statements.ts";
import { toAuditRow } from "./audit-rows.ts";

/** Rows that a transaction removes or moves. */
const MAX_ROWS = 1_000;
const MAX_EVENTS = 500;

/**
 * Appends entries to the chain. Their writers in all processes wait for each other at the row of the chain, until the transaction has
 * been committed: the order of the chain is that of the commits.
 */
export async function appendAudit(statements: Statements, entries: readonly UnchainedEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const { head } = await lockChain(statements);
  const chained = chain(head, entries);
  await insertRows(statements, { into: "audit_entries", rows: chained.map(toAuditRow) });
  const { sequence, hash } = chained.at(-1)!;
  await statements.run("update audit_chain set head_sequence = ?, head_hash = ? where id = 1", [sequence, hash]);
}

/** Removes the oldest entries, as `AuditStore.prune`. */
export async function pruneAudit(
  statements: Statements,
  { beforeMs, most }: { readonly beforeMs: number; readonly most: number },
): Promise<number> {
  const { anchor, head } = await lockChain(statements);
  const oldest = await statements.run<{ sequence: number; at_ms: number; hash: string }>(
    `select sequence, at_ms, hash from audit_entries where sequence > ? order by sequence limit ${MAX_ROWS}`,
    [anchor.sequence],
  );
  const kept = oldest.findIndex(({ sequence, at_ms: atMs }) => atMs >= beforeMs && sequence > head.sequence - most);
  // The first of the rest could be removed too: by this a verification tells pruning from a beginning that was cut off.
  const removed = (kept < 0 ? oldest : oldest.slice(0, kept)).slice(0, -1);
  const last = removed.at(-1);
  if (last === undefined) return 0;
  await statements.run("delete from audit_entries where sequence <= ?", [last.sequence]);
  await statements.run("update audit_chain set anchor_sequence = ?, anchor_hash = ? where id = 1", [
    last.sequence,
    last.hash,
  ]);
  return removed.length;
}

/** Moves security events into the audit log, as `AuditStore.takeEvents`. */
export async function takeSecurityEvents(statements: Statements): Promise<number> {
  const events = await statements.run<SecurityEventRow>(
    `select * from security_events order by at_ms, id limit ${MAX_EVENTS} ${forUpdate(statements, "skip locked")}`,
    [],
  );
  for (const chunk of chunksOf(events)) {
    const ids = chunk.map(({ id }) => id);
    await statements.run(`delete from security_events where id in ${listOf(ids.length)}`, ids);
  }
  await appendAudit(statements, events.map(toUnchained));
  return events.length;
}

export function toUnchained(row: SecurityEventRow): UnchainedEntry {
  return fromSecurityEvent({
    atMs: row.at_ms,
    type: row.type,
    actorId: row.actor_id ?? undefined,
    accountId: row.account_id ?? undefined,
    network: row.network ?? undefined,
    details: JSON.parse(row.details) as Readonly<Record<string, string>>,
  });
}

interface Ends {
  readonly anchor: ChainLink;
  readonly head: ChainLink;
}

async function lockChain(statements: Statements): Promise<Ends> {
  const [row] = await statements.run<{
    anchor_sequence: number;
    anchor_hash: string;
    head_sequence: number;
    head_hash: string;
  }>(`select * from audit_chain where id = 1 ${forUpdate(statements)}`, []);
  if (row === undefined) throw new Error("The audit log has lost the row of its chain (table audit_chain).");
  return {
    anchor: { sequence: row.anchor_sequence, hash: row.anchor_hash },
    head: { sequence: row.head_sequence, hash: row.head_hash },
  };
}

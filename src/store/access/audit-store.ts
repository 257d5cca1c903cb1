import { sql } from "kysely";
import type { UnchainedEntry } from "../../access/audit-entry.ts";
import { type AuditFilter, type AuditStore, PAGE_CHARS } from "../../access/audit-store.ts";
import { Batcher } from "../batcher.ts";
import type { Database } from "../database.ts";
import { clean } from "../ledger/ledger-rows.ts";
import type { AuditEntryRow } from "../schema.ts";
import { retryWhileBusy, StoreError } from "../store-error.ts";
import { toAuditEntry } from "./audit-rows.ts";

/** Limit for appending an entry, for which the change's caller waits. */
const LIMIT_MS = 5_000;

/**
 * The AuditStore in the database. A process appends all waiting entries in one transaction, so that it waits for the chain with one
 * connection, however many sign-ins fail at once. Lists are read by the connections for reports, so that completions do not wait for them.
 */
export function createAuditStore({ database, reports }: Record<"database" | "reports", Database>): AuditStore {
  const { query } = database;
  const batcher = new Batcher<UnchainedEntry, undefined>({
    async decide(entries) {
      await database.perform("appendAudit", entries);
      return entries.map(() => undefined);
    },
    limitMs: LIMIT_MS,
    toError: (message, cause) => (cause instanceof StoreError ? cause : new StoreError(message, { cause })),
  });
  return {
    append: (entry) => batcher.ask(cleaned(entry)),

    async list(wanted) {
      return (await retryWhileBusy(() => auditPage(reports, wanted).execute())).map(toAuditEntry);
    },

    async follow({ sequence, limit }) {
      const next = query
        .selectFrom("audit_entries")
        .selectAll()
        .where("sequence", ">", sequence)
        .orderBy("sequence")
        .limit(limit);
      return (await retryWhileBusy(() => next.execute())).map(toAuditEntry);
    },

    async ends() {
      const found = query.selectFrom("audit_chain").selectAll().where("id", "=", 1);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      if (row === undefined) throw new StoreError("The audit log has lost the row of its chain (table audit_chain).");
      return {
        anchor: { sequence: row.anchor_sequence, hash: row.anchor_hash },
        head: { sequence: row.head_sequence, hash: row.head_hash },
      };
    },

    prune: (limits) => database.perform("pruneAudit", limits),
    takeEvents: () => database.perform("takeSecurityEvents", undefined),
  };
}

/** Query of one page of a list. */
export function auditPage(
  { query, kind }: Pick<Database, "query" | "kind">,
  { limit, before, ...filter }: Parameters<AuditStore["list"]>[0],
) {
  let newest = query
    .selectFrom("audit_entries")
    .selectAll()
    .orderBy("at_ms", "desc")
    .orderBy("sequence", "desc")
    .limit(limit);
  for (const [column, value] of conditionsOf(filter)) {
    // SQLite, without statistics, may search the index of another column, and then reads the entries of all accounts.
    const isBeside = kind === "sqlite" && filter.accountId !== undefined && column !== "account_id";
    newest = newest.where(isBeside ? sql<string>`+${sql.ref(column)}` : column, "=", value);
  }
  if (filter.sinceMs !== undefined) newest = newest.where("at_ms", ">=", filter.sinceMs);
  if (filter.untilMs !== undefined) newest = newest.where("at_ms", "<", filter.untilMs);
  if (before !== undefined) {
    const { atMs, sequence } = before;
    newest = newest
      .where("at_ms", "<=", atMs)
      .where((entry) => entry.or([entry("at_ms", "<", atMs), entry("sequence", "<", sequence)]));
  }
  const charsBefore = sql<number>`coalesce(sum(${CHARS}) over (order by at_ms desc, sequence desc rows between unbounded preceding and 1 preceding), 0)`;
  const counted = query.selectFrom(newest.as("newest")).selectAll().select(charsBefore.as("chars_before"));
  return query
    .selectFrom(counted.as("counted"))
    .selectAll()
    .where("chars_before", "<", PAGE_CHARS)
    .orderBy("at_ms", "desc")
    .orderBy("sequence", "desc");
}

const CHARS = sql`length(coalesce(before_json, '')) + length(coalesce(after_json, '')) + length(coalesce(details, ''))`;

type Column = "action" | "actor_kind" | "actor_id" | "object_kind" | "object_id" | "account_id" | "result";

function conditionsOf(filter: AuditFilter): [Column, string][] {
  const values: Readonly<Record<Column, string | undefined>> = {
    action: filter.action,
    actor_kind: filter.actorKind,
    actor_id: filter.actorId,
    object_kind: filter.objectKind,
    object_id: filter.objectId,
    account_id: filter.accountId,
    result: filter.result,
  } satisfies Partial<Record<keyof AuditEntryRow, string | undefined>>;
  return (Object.entries(values) as [Column, string | undefined][]).flatMap(([column, value]) =>
    value === undefined ? [] : [[column, value] as [Column, string]],
  );
}

/** Cleans the texts of an entry, so that every database gives them back unchanged: the hash depends on them. */
function cleaned(entry: UnchainedEntry): UnchainedEntry {
  const { actor, object, client } = entry;
  return {
    ...entry,
    actor: { ...actor, id: actor.id === undefined ? undefined : clean(actor.id) },
    object: object && { ...object, id: clean(object.id) },
    client: client === undefined ? undefined : clean(client),
  };
}

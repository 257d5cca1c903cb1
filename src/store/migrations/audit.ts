import type { Kysely } from "kysely";
import { chain, type ChainLink, GENESIS } from "../../access/audit-entry.ts";
import { toAuditRow } from "../access/audit-rows.ts";
import { toUnchained } from "../access/audit-transactions.ts";
import type { Migration } from "../migrations.ts";
import type { Schema } from "../schema.ts";

/** Events of one statement. */
const BATCH = 500;

/** The audit log with its chain, and the security events in it. */
export const audit: Migration = {
  name: "the audit log, and security events in it",
  async up(database) {
    await createEntries(database);
    await createChain(database);
    const tables = database as Kysely<Pick<Schema, "security_events" | "audit_entries" | "audit_chain">>;
    let head: ChainLink = GENESIS;
    for (let after: { readonly at_ms: number; readonly id: string } | undefined; ;) {
      let oldest = tables.selectFrom("security_events").selectAll().orderBy("at_ms").orderBy("id").limit(BATCH);
      if (after !== undefined) {
        const { at_ms: atMs, id } = after;
        oldest = oldest
          .where("at_ms", ">=", atMs)
          .where((event) => event.or([event("at_ms", ">", atMs), event("id", ">", id)]));
      }
      const events = await oldest.execute();
      if (events.length === 0) break;
      const entries = chain(head, events.map(toUnchained));
      await tables.insertInto("audit_entries").values(entries.map(toAuditRow)).execute();
      // Not all of the table: what an earlier program adds meanwhile is moved later.
      const ids = events.map(({ id }) => id);
      await tables.deleteFrom("security_events").where("id", "in", ids).execute();
      head = entries.at(-1)!;
      after = events.at(-1);
    }
    await tables
      .insertInto("audit_chain")
      .values({
        id: 1,
        anchor_sequence: GENESIS.sequence,
        anchor_hash: GENESIS.hash,
        head_sequence: head.sequence,
        head_hash: head.hash,
      })
      .execute();
  },
};

async function createEntries({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable("audit_entries")
    .addColumn("sequence", "bigint", (column) => column.primaryKey())
    .addColumn("at_ms", "bigint", (column) => column.notNull())
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("actor_kind", "text", (column) => column.notNull())
    .addColumn("actor_id", "text")
    .addColumn("network", "text")
    .addColumn("client", "text")
    .addColumn("object_kind", "text")
    .addColumn("object_id", "text")
    .addColumn("account_id", "text")
    .addColumn("result", "text", (column) => column.notNull())
    .addColumn("before_json", "text")
    .addColumn("after_json", "text")
    .addColumn("details", "text")
    .addColumn("hash", "text", (column) => column.notNull())
    .execute();
  // The columns that filter lists, each with the order of lists.
  const conditions = ["account_id", "action", "actor_id", "actor_kind", "object_id", "object_kind", "result"];
  for (const condition of conditions)
    await schema
      .createIndex(`audit_entries_${condition}`)
      .on("audit_entries")
      .columns([condition, "at_ms", "sequence"])
      .execute();
  await schema.createIndex("audit_entries_time").on("audit_entries").columns(["at_ms", "sequence"]).execute();
}

async function createChain({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable("audit_chain")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("anchor_sequence", "bigint", (column) => column.notNull())
    .addColumn("anchor_hash", "text", (column) => column.notNull())
    .addColumn("head_sequence", "bigint", (column) => column.notNull())
    .addColumn("head_hash", "text", (column) => column.notNull())
    .execute();
}

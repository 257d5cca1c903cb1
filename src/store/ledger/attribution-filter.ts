import { type RawBuilder, sql } from "kysely";
import type { AttributionFilter } from "../../ledger/ledger-store.ts";

/** Conditions on completions. */
export function attributedTo({ endUser, session, agent, tag }: AttributionFilter): RawBuilder<boolean>[] {
  const conditions: RawBuilder<boolean>[] = [];
  if (endUser !== undefined) conditions.push(sql`end_user = ${endUser}`);
  if (session !== undefined) conditions.push(sql`session = ${session}`);
  if (agent !== undefined) conditions.push(sql`agent = ${agent}`);
  // Quotation marks within a tag are escaped, so this finds whole ones.
  if (tag !== undefined) conditions.push(sql`replace(tags, ${JSON.stringify(tag)}, '') <> tags`);
  return conditions;
}

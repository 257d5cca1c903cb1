import { type RawBuilder, sql } from "kysely";
import type { AttributionFilter } from "../../ledger/ledger-store.ts";
import type { Database } from "../database.ts";

const FIELDS = ["endUser", "session", "agent", "tag"] as const satisfies readonly (keyof AttributionFilter)[];

/** Whether a filter has a condition on attribution. */
export function isAttributed(filter: AttributionFilter): boolean {
  return FIELDS.some((field) => filter[field] !== undefined);
}

/** Conditions on completions. */
export function attributedTo(
  { kind }: Pick<Database, "kind">,
  { endUser, session, agent, tag }: AttributionFilter,
): RawBuilder<boolean>[] {
  const conditions: RawBuilder<boolean>[] = [];
  if (endUser !== undefined) conditions.push(sql`end_user = ${endUser}`);
  if (session !== undefined) conditions.push(sql`session = ${session}`);
  if (agent !== undefined) conditions.push(sql`agent = ${agent}`);
  if (tag === undefined) return conditions;
  // Excludes most rows faster than parsing their lists does. Tags may have quotation marks and commas, so it lets some others pass.
  conditions.push(sql`replace(tags, ${JSON.stringify(tag)}, '') <> tags`);
  const tags =
    kind === "postgres" ? sql`json_array_elements_text(tags::json) as tag (value)` : sql`json_each(tags) as tag`;
  conditions.push(sql`exists (select 1 from ${tags} where tag.value = ${tag})`);
  return conditions;
}

import { type RawBuilder, sql } from "kysely";
import type { Rule } from "../../alerts/alert.ts";

/** 0 for a key or account with an open alert of these rules, else 1. */
export function isNew(kind: "key:" | "account:", id: string, rules: readonly Rule[]): RawBuilder<number> {
  return sql`case when exists (
    select 1 from alerts where rule in (${sql.join(rules)}) and subject = ${sql.lit(kind)} || ${sql.ref(id)} and resolved_at_ms is null
  ) then 0 else 1 end`;
}

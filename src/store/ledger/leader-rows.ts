import type { UsageLeaderRow } from "../schema.ts";
import { insertRows, type Statements } from "../statements.ts";

const REPLACE = `on conflict (day_ms, kind, id) do update set
  cost_micro_usd = excluded.cost_micro_usd, completions = excluded.completions`;

/** Replaces the leaders of a day. Another process that does so at the same moment may leave some of its own. */
export async function writeLeaders(
  statements: Statements,
  { dayMs, rows }: { readonly dayMs: number; readonly rows: readonly UsageLeaderRow[] },
): Promise<void> {
  await statements.run("delete from usage_leaders where day_ms = ?", [dayMs]);
  await insertRows(statements, { into: "usage_leaders", rows, ending: REPLACE });
}

import { type RawBuilder, sql } from "kysely";
import { UTC, type ZoneOffsets } from "../../ledger/time-zone.ts";
import { STEP_MS, type UsageStep } from "../../ledger/usage-store.ts";

/** Start of the step that a column's time belongs to; of days their number in the zone. Integer division in both databases. */
export function stepOf(column: string, step: UsageStep, offsets: ZoneOffsets = UTC): RawBuilder<number> {
  if (step === "all") return sql<number>`0`;
  const lengthMs = sql.lit(STEP_MS[step]);
  if (step !== "day") return sql<number>`${sql.ref(column)} / ${lengthMs} * ${lengthMs}`;
  return sql<number>`(${sql.ref(column)} + ${offsetOf(column, offsets)}) / ${lengthMs}`;
}

function offsetOf(column: string, [first, ...later]: ZoneOffsets): RawBuilder<number> {
  if (later.length === 0) return sql<number>`${sql.lit(first.offsetMs)}`;
  const cases = later
    .toReversed()
    .map(({ fromMs, offsetMs }) => sql`when ${sql.ref(column)} >= ${sql.lit(fromMs)} then ${sql.lit(offsetMs)}`);
  return sql<number>`case ${sql.join(cases, sql` `)} else ${sql.lit(first.offsetMs)} end`;
}

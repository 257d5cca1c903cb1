import { type RawBuilder, sql } from "kysely";
import {
  type LedgerStore,
  type LogOrder,
  SORTED_ENTRIES,
  type SortedPage,
  type SortedQuery,
} from "../../ledger/ledger-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import type { CompletionRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toLedgerEntry } from "./ledger-rows.ts";
import { COMPLETIONS, from, inTime, narrowed, windowEnd } from "./log-pages.ts";

const VALUES: Readonly<Record<LogOrder, RawBuilder<number>>> = {
  time: sql`ended_at_ms`,
  cost: sql`cost_micro_usd`,
  duration: sql`duration_ms`,
  tokens: sql`(prompt_tokens + completion_tokens)`,
  firstContent: sql`first_content_ms`,
};

type SortedRow = CompletionRow & { readonly sorted_by: number };

/** Entries of the ledger in another order than that of time: no index has it, so a bounded number of them is sorted. */
export function createSortedLog(
  database: Database,
  { window = SORTED_ENTRIES }: { readonly window?: number } = {},
): Pick<LedgerStore, "listSorted"> {
  return {
    async listSorted(query): Promise<SortedPage> {
      const { sinceMs, limit } = query;
      // On each page: `sinceMs` and `after` of later ones are the caller's.
      const ends = windowEnd(database, unplaced(query), { window });
      const end = await retryWhileBusy(() => ends.executeTakeFirst());
      const page = sortedPage(database, { ...query, sinceMs: end?.ended_at_ms ?? sinceMs });
      const found = (await retryWhileBusy(() => page.execute())) as unknown as SortedRow[];
      const last = found.length > limit ? found[limit - 1] : undefined;
      return {
        entries: found.slice(0, limit).map(toLedgerEntry),
        next: last && { value: last.sorted_by, endedAtMs: last.ended_at_ms, completionId: last.id },
        sortedSinceMs: end?.ended_at_ms,
      };
    },
  };
}

/** Query of one page, plus one row that shows whether another page follows. */
function sortedPage(database: Database, query: SortedQuery) {
  const { after, limit, order, isAscending = false } = query;
  const [direction, beyond] = isAscending ? (["asc", ">"] as const) : (["desc", "<"] as const);
  const value = VALUES[order];
  const id = inCodeUnits(database, "id");
  let page = narrowed(inTime(from(database, COMPLETIONS).selectAll(), unplaced(query)), query, {
    database,
    table: COMPLETIONS,
  })
    .select(value.as("sorted_by"))
    .orderBy(value, direction)
    .orderBy("ended_at_ms", direction)
    .orderBy(id, direction)
    .limit(limit + 1);
  if (order === "firstContent") page = page.where(value, "is not", null);
  if (after !== undefined) {
    page = page.where((row) =>
      row.or([
        row(value, beyond, after.value),
        row.and([row(value, "=", after.value), row("ended_at_ms", beyond, after.endedAtMs)]),
        row.and([
          row(value, "=", after.value),
          row("ended_at_ms", "=", after.endedAtMs),
          row(id, beyond, after.completionId),
        ]),
      ]),
    );
  }
  return page;
}

/** Without its position, which is one of another order. */
function unplaced(sorted: SortedQuery) {
  const { after: _, ...query } = sorted;
  return query;
}

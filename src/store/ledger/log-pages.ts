import { type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import type { AttributionFilter, LogPosition, LogQuery } from "../../ledger/ledger-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import type { RefusalRow, Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { attributedTo, isAttributed } from "./attribution-filter.ts";

/** Rows that one page examines for filters without an index. */
const WINDOW = 20_000;

/** Rows with the same request ID that are examined for one of an account. */
const MAX_NAMESAKES = 1_000;

/** A table of requests by their ends, with the columns of their models. */
interface LogTable {
  readonly name: "completions" | "refusals";
  readonly models: readonly string[];
}

export const COMPLETIONS: LogTable = { name: "completions", models: ["requested_model", "served_model"] };
export const REFUSALS: LogTable = { name: "refusals", models: ["requested_model"] };

/** The columns that both tables have. */
type LogFilters = Pick<LogQuery, "accountId" | "keyId" | "model" | "outcome" | keyof AttributionFilter>;
type LogRow = Omit<RefusalRow, "message" | "entry">;
type Selection<O> = SelectQueryBuilder<Schema, "refusals", O>;

/** A page of rows, latest end first, then largest ID. */
export interface RowPage<R> {
  readonly rows: readonly R[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** Lists the rows of a table in pages. Without an index for the filters a page examines `window` rows. */
export async function listRows<R extends LogRow>(
  database: Database,
  query: LogQuery,
  { table, window = WINDOW }: { readonly table: LogTable; readonly window?: number | undefined },
): Promise<RowPage<R>> {
  const ends = isNarrowed(query) ? windowEnd(database, query, { table, window }) : undefined;
  const end = ends && (await retryWhileBusy(() => ends.executeTakeFirst()));
  const page = logPage(database, query, { table, fromMs: end?.ended_at_ms });
  const found = (await retryWhileBusy(() => page.execute())) as unknown as R[];
  const rows = found.slice(0, query.limit);
  if (found.length > query.limit) return { rows, next: positionOf(rows.at(-1)!) };
  // After all rows that ended at the window's end: the empty ID sorts before all others.
  return { rows, next: end && { endedAtMs: end.ended_at_ms, completionId: "" } };
}

function positionOf({ ended_at_ms, id }: LogRow): LogPosition {
  return { endedAtMs: ended_at_ms, completionId: id };
}

/** Whether no single index covers the filters. */
function isNarrowed(query: LogQuery): boolean {
  const { model, outcome, accountId, keyId } = query;
  return (
    model !== undefined ||
    outcome !== undefined ||
    isAttributed(query) ||
    (accountId !== undefined && keyId !== undefined)
  );
}

/** Query of one page, plus one row that shows whether another page follows. */
export function logPage(
  database: Database,
  query: LogQuery,
  { table = COMPLETIONS, fromMs = 0 }: { readonly table?: LogTable; readonly fromMs?: number | undefined } = {},
): Selection<RefusalRow> {
  const { limit, after } = query;
  let page = narrowed(inTime(from(database, table).selectAll(), query), query, { database, table })
    .where("ended_at_ms", ">=", fromMs)
    .orderBy("ended_at_ms", "desc")
    .orderBy(inCodeUnits(database, "id"), "desc")
    .limit(limit + 1);
  if (after !== undefined) {
    page = page.where((row) =>
      row.or([row("ended_at_ms", "<", after.endedAtMs), row(inCodeUnits(database, "id"), "<", after.completionId)]),
    );
  }
  return page;
}

/** The rows that match the filters, except for the time. */
export function narrowed<O>(
  selection: Selection<O>,
  query: LogFilters,
  { database, table }: { readonly database: Pick<Database, "kind">; readonly table: LogTable },
): Selection<O> {
  const { accountId, keyId, model, outcome } = query;
  let page = selection;
  if (accountId !== undefined) page = page.where("account_id", "=", accountId);
  if (keyId !== undefined) page = page.where("key_id", "=", keyId);
  if (model !== undefined)
    page = page.where((row) => row.or(table.models.map((column) => row(column as "requested_model", "=", model))));
  if (outcome === "failed") page = page.where("outcome", "<>", "served");
  else if (outcome !== undefined) page = page.where("outcome", "=", outcome);
  for (const condition of attributedTo(database, query)) page = page.where(condition);
  return page;
}

/** The rows that a report or a page examines. */
interface LogWindow {
  readonly table?: LogTable;
  readonly window: number;
  /** Weight of a row in the window, at least 1. Default: 1. */
  readonly weight?: RawBuilder<number> | undefined;
}

/** Query of the time up to which a page looks back; no row when there are fewer rows than the window. */
export function windowEnd(
  database: Database,
  query: Partial<LogQuery>,
  { table = COMPLETIONS, window, weight }: LogWindow,
): Pick<Selection<Pick<RefusalRow, "ended_at_ms">>, "compile" | "executeTakeFirst"> {
  const { accountId, keyId } = query;
  // By the same index as the page.
  let latest = inTime(from(database, table).select("ended_at_ms"), query).orderBy("ended_at_ms", "desc");
  if (keyId !== undefined) latest = latest.where("key_id", "=", keyId);
  else if (accountId !== undefined) latest = latest.where("account_id", "=", accountId);
  if (weight === undefined) return latest.limit(1).offset(window);
  const counted = sql<number>`sum(weight) over (order by ended_at_ms desc rows unbounded preceding)`.as("counted");
  const weighed = latest.select(weight.as("weight")).limit(window + 1);
  return database.query
    .selectFrom(database.query.selectFrom(weighed.as("weighed")).select(["ended_at_ms", counted]).as("added"))
    .select("ended_at_ms")
    .where("counted", ">", window)
    .limit(1);
}

/** A request ID, and the accounts in which its requests are looked for; undefined: in all. */
interface NamedRequests {
  readonly table: LogTable;
  readonly requestId: string;
  readonly accountIds: readonly string[] | undefined;
}

/**
 * Query of the latest row with this request ID, which a caller may use for many requests. Of the accounts' rows only those among the
 * latest of all are found, so that the requests of other accounts with the same ID cost little.
 */
export function namesakes(database: Database, { table, requestId, accountIds }: NamedRequests): Selection<RefusalRow> {
  const latest = from(database, table)
    .selectAll()
    .where("request_id", "=", requestId)
    .orderBy("ended_at_ms", "desc")
    .limit(accountIds === undefined ? 1 : MAX_NAMESAKES);
  const own = database.query.selectFrom(latest.as("latest")).selectAll().orderBy("ended_at_ms", "desc").limit(1);
  const found = accountIds === undefined ? own : own.where("account_id", "in", accountIds);
  return found as unknown as Selection<RefusalRow>;
}

type LogTime = Pick<LogQuery, "after" | "sinceMs" | "untilMs">;

/** Typed as the smaller table: only columns that both have are named here. */
export function from({ query }: Database, { name }: LogTable): Selection<object> {
  return query.selectFrom(name as "refusals");
}

export function inTime<O>(selection: Selection<O>, { after, sinceMs, untilMs }: LogTime): Selection<O> {
  let within = selection;
  if (after !== undefined) within = within.where("ended_at_ms", "<=", after.endedAtMs);
  if (sinceMs !== undefined) within = within.where("ended_at_ms", ">=", sinceMs);
  if (untilMs !== undefined) within = within.where("ended_at_ms", "<", untilMs);
  return within;
}

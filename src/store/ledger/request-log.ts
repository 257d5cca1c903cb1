import type { SelectQueryBuilder } from "kysely";
import type { LedgerStore, LogPosition, LogQuery } from "../../ledger/ledger-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import type { CompletionRow, Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toLedgerEntry } from "./ledger-rows.ts";

/** Entries that one page examines for filters without an index. */
const WINDOW = 20_000;

/** Entries with the same request ID that are examined for one of an account. */
const MAX_NAMESAKES = 1_000;

type Selection<O> = SelectQueryBuilder<Schema, "completions", O>;

/** The ledger as a list of requests, and the look-up of one. */
export function createRequestLog(
  database: Database,
  { window = WINDOW }: { readonly window?: number } = {},
): Pick<LedgerStore, "list" | "find"> {
  return {
    async list(query) {
      const ends = isNarrowed(query) ? windowEnd(database, query, window) : undefined;
      const found = ends && (await retryWhileBusy(() => ends.executeTakeFirst()));
      const page = logPage(database, query, found?.ended_at_ms);
      const rows = await retryWhileBusy(() => page.execute());
      const entries = rows.slice(0, query.limit).map(toLedgerEntry);
      return { entries, next: rows.length > query.limit ? endOf(entries.at(-1)!) : found && windowPosition(found) };
    },

    async find(id, accountId) {
      let byId = database.query.selectFrom("completions").selectAll().where("id", "=", id);
      if (accountId !== undefined) byId = byId.where("account_id", "=", accountId);
      const named = namesakes(database, id, accountId);
      const row =
        (await retryWhileBusy(() => byId.executeTakeFirst())) ?? (await retryWhileBusy(() => named.executeTakeFirst()));
      return row && toLedgerEntry(row);
    },
  };
}

function endOf({
  endedAtMs,
  completionId,
}: {
  readonly endedAtMs: number;
  readonly completionId: string;
}): LogPosition {
  return { endedAtMs, completionId };
}

/** Position after all entries that ended at the window's end: the empty ID sorts before all others. */
function windowPosition({ ended_at_ms }: Pick<CompletionRow, "ended_at_ms">): LogPosition {
  return { endedAtMs: ended_at_ms, completionId: "" };
}

/** Whether no single index covers the filters. */
function isNarrowed({ model, outcome, accountId, keyId }: LogQuery): boolean {
  return model !== undefined || outcome !== undefined || (accountId !== undefined && keyId !== undefined);
}

/** Query of one page, plus one entry that shows whether another page follows. */
export function logPage(database: Database, query: LogQuery, fromMs = 0): Selection<CompletionRow> {
  const { limit, after, accountId, keyId, model, outcome } = query;
  let page = inTime(database.query.selectFrom("completions").selectAll(), query)
    .where("ended_at_ms", ">=", fromMs)
    .orderBy("ended_at_ms", "desc")
    .orderBy(inCodeUnits(database, "id"), "desc")
    .limit(limit + 1);
  if (after !== undefined) {
    page = page.where((entry) =>
      entry.or([
        entry("ended_at_ms", "<", after.endedAtMs),
        entry(inCodeUnits(database, "id"), "<", after.completionId),
      ]),
    );
  }
  if (accountId !== undefined) page = page.where("account_id", "=", accountId);
  if (keyId !== undefined) page = page.where("key_id", "=", keyId);
  if (model !== undefined) {
    page = page.where((entry) => entry.or([entry("requested_model", "=", model), entry("served_model", "=", model)]));
  }
  if (outcome === "failed") page = page.where("outcome", "<>", "served");
  else if (outcome !== undefined) page = page.where("outcome", "=", outcome);
  return page;
}

/** Query of the time up to which a page looks back; no row when there are fewer entries than the window. */
export function windowEnd(
  database: Database,
  query: LogQuery,
  window: number,
): Selection<Pick<CompletionRow, "ended_at_ms">> {
  const { accountId, keyId } = query;
  // By the same index as the page.
  const end = inTime(database.query.selectFrom("completions").select("ended_at_ms"), query)
    .orderBy("ended_at_ms", "desc")
    .limit(1)
    .offset(window);
  if (keyId !== undefined) return end.where("key_id", "=", keyId);
  return accountId === undefined ? end : end.where("account_id", "=", accountId);
}

function inTime<O>(selection: Selection<O>, { after, sinceMs, untilMs }: LogQuery): Selection<O> {
  let within = selection;
  if (after !== undefined) within = within.where("ended_at_ms", "<=", after.endedAtMs);
  if (sinceMs !== undefined) within = within.where("ended_at_ms", ">=", sinceMs);
  if (untilMs !== undefined) within = within.where("ended_at_ms", "<", untilMs);
  return within;
}

/** Query of the latest completion with this request ID, which a caller may use for many requests. */
export function namesakes({ query }: Database, requestId: string, accountId: string | undefined) {
  const latest = query
    .selectFrom("completions")
    .selectAll()
    .where("request_id", "=", requestId)
    .orderBy("ended_at_ms", "desc")
    .limit(accountId === undefined ? 1 : MAX_NAMESAKES);
  const own = query.selectFrom(latest.as("latest")).selectAll().orderBy("ended_at_ms", "desc").limit(1);
  return accountId === undefined ? own : own.where("account_id", "=", accountId);
}

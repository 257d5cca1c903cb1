import type { SelectQueryBuilder } from "kysely";
import type { LedgerStore, LogPosition, LogQuery } from "../../ledger/ledger-store.ts";
import { type Database, inCodeUnits } from "../database.ts";
import type { CompletionRow, Schema } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toLedgerEntry } from "./ledger-rows.ts";

/** How many entries one page looks through for those that no index finds. */
const WINDOW = 20_000;

/** How many entries with the same request ID are looked through for one of an account. */
const MAX_NAMESAKES = 1_000;

type Selection<O> = SelectQueryBuilder<Schema, "completions", O>;

/** The ledger as a list of single requests, and the way to one of them. */
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

/** What ended at the window's end was looked at: no ID comes after none. */
function windowPosition({ ended_at_ms }: Pick<CompletionRow, "ended_at_ms">): LogPosition {
  return { endedAtMs: ended_at_ms, completionId: "" };
}

/** Whether an index alone does not lead to what is asked for. */
function isNarrowed({ model, outcome, accountId, keyId }: LogQuery): boolean {
  return model !== undefined || outcome !== undefined || (accountId !== undefined && keyId !== undefined);
}

/** One page and, so that it is known whether another one follows, one entry more. */
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

/** The moment up to which a page looks back: none when there are fewer entries than it may look through. */
export function windowEnd(
  database: Database,
  query: LogQuery,
  window: number,
): Selection<Pick<CompletionRow, "ended_at_ms">> {
  const { accountId, keyId } = query;
  // By the index that leads to the page.
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

/** The latest of those whose request has this ID: callers may give all of theirs the same. */
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

import type { Attribution } from "../../core/attribution.ts";
import type { EntryDetails } from "../../core/entry-details.ts";
import { type LedgerEntry, type NewLedgerEntry, NO_TOKENS, type TokenCounts } from "../../core/ledger.ts";
import type { LimitState } from "../../core/limiter.ts";
import type { CompletionRow } from "../schema.ts";

/**
 * Makes the row of an entry. No entry may be refused by a database, because it would block all that follow it: some texts
 * are the caller's, and PostgreSQL accepts no NUL in a text.
 */
export function toCompletionRow(entry: NewLedgerEntry): CompletionRow {
  const { tokens, limits, attribution } = entry;
  const requests = limits?.requests;
  const tokenRate = limits?.tokens;
  return {
    id: entry.completionId,
    request_id: clean(entry.requestId),
    account_id: entry.accountId,
    key_id: entry.keyId,
    entrance: entry.entrance,
    started_at_ms: whole(entry.startedAtMs),
    ended_at_ms: whole(entry.endedAtMs),
    requested_model: clean(entry.requestedModel),
    served_model: entry.servedModel === undefined ? null : clean(entry.servedModel),
    streamed: entry.streamed ? 1 : 0,
    outcome: entry.outcome,
    attempts: JSON.stringify(entry.attempts),
    prompt_tokens: whole(tokens.prompt),
    cached_tokens: whole(tokens.cached),
    completion_tokens: whole(tokens.completion),
    reasoning_tokens: whole(tokens.reasoning),
    image_tokens: whole(tokens.image),
    cost_micro_usd: whole(entry.costMicroUsd),
    own_cost_micro_usd: whole(entry.ownCostMicroUsd ?? 0),
    duration_ms: finite(entry.durationMs),
    first_content_ms: entry.firstContentMs === undefined ? null : finite(entry.firstContentMs),
    partial: entry.partial ? 1 : 0,
    estimated: entry.estimated ? 1 : 0,
    request_limit: requests === undefined ? null : whole(requests.limit),
    request_limit_remaining: requests === undefined ? null : whole(requests.remaining),
    request_limit_reset_ms: requests === undefined ? null : whole(requests.resetMs),
    token_limit: tokenRate === undefined ? null : whole(tokenRate.limit),
    token_limit_remaining: tokenRate === undefined ? null : whole(tokenRate.remaining),
    token_limit_reset_ms: tokenRate === undefined ? null : whole(tokenRate.resetMs),
    other_counts: toOtherCounts(tokens),
    spending_month: entry.spendingMonth ?? null,
    details: entry.details === undefined ? null : JSON.stringify(entry.details),
    end_user: cleanOrNull(attribution?.endUser),
    session: cleanOrNull(attribution?.session),
    agent: cleanOrNull(attribution?.agent),
    tags: attribution?.tags === undefined ? null : JSON.stringify(attribution.tags.map(clean)),
  };
}

/** Makes the entry of a row. */
export function toLedgerEntry(row: CompletionRow): LedgerEntry {
  return {
    completionId: row.id,
    requestId: row.request_id,
    accountId: row.account_id,
    keyId: row.key_id,
    entrance: row.entrance as LedgerEntry["entrance"],
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    requestedModel: row.requested_model,
    servedModel: row.served_model ?? undefined,
    streamed: row.streamed === 1,
    outcome: row.outcome as LedgerEntry["outcome"],
    attempts: readAttempts(row.attempts),
    tokens: {
      prompt: row.prompt_tokens,
      cached: row.cached_tokens,
      completion: row.completion_tokens,
      reasoning: row.reasoning_tokens,
      image: row.image_tokens,
      ...(row.other_counts !== null && (JSON.parse(row.other_counts) as OtherCounts)),
    },
    costMicroUsd: row.cost_micro_usd,
    ...(row.own_cost_micro_usd > 0 && { ownCostMicroUsd: row.own_cost_micro_usd }),
    durationMs: row.duration_ms,
    firstContentMs: row.first_content_ms ?? undefined,
    partial: row.partial === 1,
    estimated: row.estimated === 1,
    limits: limitsOf(row),
    ...attributionOf(row),
    ...(row.details !== null && { details: JSON.parse(row.details) as EntryDetails }),
  };
}

function attributionOf(row: CompletionRow): Pick<LedgerEntry, "attribution"> {
  const { end_user: endUser, session, agent, tags } = row;
  const attribution: Attribution = {
    ...(endUser !== null && { endUser }),
    ...(session !== null && { session }),
    ...(agent !== null && { agent }),
    ...(tags !== null && { tags: JSON.parse(tags) as string[] }),
  };
  return Object.keys(attribution).length === 0 ? {} : { attribution };
}

/** Counts that most completions do not have. */
type OtherCounts = Omit<TokenCounts, keyof typeof NO_TOKENS>;

function toOtherCounts({ unknown, ...counts }: TokenCounts): string | null {
  const others = Object.entries(counts).filter(([name, count = 0]) => !(name in NO_TOKENS) && count > 0);
  const row = { ...Object.fromEntries(others), ...(unknown !== undefined && { unknown: unknown.map(clean) }) };
  return Object.keys(row).length === 0 ? null : JSON.stringify(row);
}

/** The oldest rows have no `startMs`. */
function readAttempts(json: string): LedgerEntry["attempts"] {
  return (JSON.parse(json) as LedgerEntry["attempts"]).map((attempt) => ({
    ...attempt,
    startMs: attempt.startMs ?? 0,
  }));
}

function limitsOf(row: CompletionRow): LedgerEntry["limits"] {
  const requests = toLimitState(row.request_limit, row.request_limit_remaining, row.request_limit_reset_ms);
  const tokens = toLimitState(row.token_limit, row.token_limit_remaining, row.token_limit_reset_ms);
  return requests === undefined && tokens === undefined ? undefined : { requests, tokens };
}

function toLimitState(limit: number | null, remaining: number | null, resetMs: number | null): LimitState | undefined {
  return limit === null ? undefined : { limit, remaining: remaining ?? 0, resetMs: resetMs ?? 0 };
}

/** A text that both databases accept: PostgreSQL takes no NUL and no lone surrogate. */
export function clean(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

function cleanOrNull(text: string | undefined): string | null {
  return text === undefined ? null : clean(text);
}

function whole(value: number): number {
  return Math.min(Math.max(Math.round(finite(value)), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

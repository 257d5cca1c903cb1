import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type CompletionEntrySchema,
  UsageGrouping,
  type UsageRowSchema,
  type UsageService,
} from "../../gen/parley/console/v1/usage_pb.js";
import type { Clock } from "../core/clock.ts";
import { invalidField } from "../core/failure.ts";
import type { LedgerEntry } from "../core/ledger.ts";
import type { LedgerStore, UsageGroup, UsageRow } from "../ledger/ledger-store.ts";
import { accountInView, readId, signedInOf } from "./call.ts";
import { pageSize } from "./page-size.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_SPAN_MS = 30 * DAY_MS;
const MAX_SPAN_MS = 366 * DAY_MS;

const GROUPS: Readonly<Record<number, UsageGroup>> = {
  [UsageGrouping.UNSPECIFIED]: "model",
  [UsageGrouping.MODEL]: "model",
  [UsageGrouping.KEY]: "key",
  [UsageGrouping.ACCOUNT]: "account",
  [UsageGrouping.DAY]: "day",
} satisfies Record<UsageGrouping, UsageGroup>;

/** Usage from the ledger: of one's own account, and of all for administrators. */
export function createUsageService(
  ledger: Pick<LedgerStore, "usage" | "list">,
  clock: Clock,
): ServiceImpl<typeof UsageService> {
  return {
    async summarize({ since, until, by, accountId, keyId }, context) {
      const group = GROUPS[by];
      if (group === undefined) throw invalidField("by", "is not one of UsageGrouping");
      const untilMs = until === undefined ? clock.now() : readTime("until", until);
      const sinceMs = since === undefined ? untilMs - DEFAULT_SPAN_MS : readTime("since", since);
      if (sinceMs > untilMs || untilMs - sinceMs > MAX_SPAN_MS) {
        throw invalidField("since", "must be before until, and at most 366 days");
      }
      const rows = await ledger.usage({
        sinceMs,
        untilMs,
        by: group,
        accountId: accountInView(signedInOf(context), accountId),
        keyId: readId("key_id", keyId),
      });
      return { rows: rows.map(toRowMessage) };
    },

    async listCompletions({ pageToken, limit, accountId }, context) {
      const size = pageSize(limit);
      const entries = await ledger.list({
        limit: size,
        ...readPageToken(pageToken),
        accountId: accountInView(signedInOf(context), accountId),
      });
      const last = entries.at(-1);
      return {
        completions: entries.map(toEntryMessage),
        nextPageToken: last === undefined || entries.length < size ? "" : toPageToken(last),
      };
    },
  };
}

/** Where a page ends. Nothing in it is secret, but nobody is to rely on it. */
function toPageToken({ startedAtMs, completionId }: LedgerEntry): string {
  return Buffer.from(`${startedAtMs} ${completionId}`).toString("base64url");
}

function readPageToken(token: string): { beforeMs: number; beforeId?: string } {
  if (token === "") return { beforeMs: Number.MAX_SAFE_INTEGER };
  const [, ms, id] = /^(\d{1,15}) ([\w-]{1,64})$/.exec(Buffer.from(token, "base64url").toString("latin1")) ?? [];
  if (ms === undefined || id === undefined) throw invalidField("page_token", "is not one that a page ended with");
  return { beforeMs: Number(ms), beforeId: id };
}

/** A moment in Unix milliseconds. Throws `invalid_request` for one that no completion can have. */
function readTime(field: string, time: Timestamp): number {
  const atMs = timestampMs(time);
  if (Number.isSafeInteger(atMs) && atMs >= 0) return atMs;
  throw invalidField(field, "is not a time after 1970");
}

function toRowMessage({ group, name = "", ...counts }: UsageRow): MessageInitShape<typeof UsageRowSchema> {
  return {
    group,
    name,
    completions: BigInt(counts.completions),
    failed: BigInt(counts.failed),
    partial: BigInt(counts.partial),
    estimated: BigInt(counts.estimated),
    promptTokens: BigInt(counts.promptTokens),
    cachedTokens: BigInt(counts.cachedTokens),
    completionTokens: BigInt(counts.completionTokens),
    reasoningTokens: BigInt(counts.reasoningTokens),
    imageTokens: BigInt(counts.imageTokens),
    costMicroUsd: BigInt(counts.costMicroUsd),
  };
}

function toEntryMessage(entry: LedgerEntry): MessageInitShape<typeof CompletionEntrySchema> {
  const { requestId, accountId, keyId, entrance, requestedModel, servedModel = "", streamed, outcome } = entry;
  const { tokens, durationMs, firstContentMs, partial, estimated } = entry;
  return {
    id: entry.completionId,
    requestId,
    accountId,
    keyId,
    entrance,
    startTime: timestampFromMs(entry.startedAtMs),
    requestedModel,
    servedModel,
    streamed,
    outcome,
    attempts: [...entry.attempts],
    promptTokens: BigInt(tokens.prompt),
    cachedTokens: BigInt(tokens.cached),
    completionTokens: BigInt(tokens.completion),
    reasoningTokens: BigInt(tokens.reasoning),
    imageTokens: BigInt(tokens.image),
    costMicroUsd: BigInt(entry.costMicroUsd),
    durationMs,
    ...(firstContentMs !== undefined && { firstContentMs }),
    partial,
    estimated,
  };
}

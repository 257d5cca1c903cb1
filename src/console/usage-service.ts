import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { UsageGrouping, type UsageRowSchema, type UsageService } from "../../gen/parley/console/v1/usage_pb.js";
import type { Clock } from "../core/clock.ts";
import { invalidField } from "../core/failure.ts";
import type { LedgerStore, UsageGroup, UsageRow } from "../ledger/ledger-store.ts";
import { accountInView, readId, signedInOf } from "./call.ts";
import { readTime } from "./read-time.ts";

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
  ledger: Pick<LedgerStore, "usage">,
  clock: Clock,
): Pick<ServiceImpl<typeof UsageService>, "summarize"> {
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
  };
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

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  GetLatencyResponseSchema,
  LatencyPointSchema,
  SummarizeUsageResponseSchema,
  UsageRowSchema,
  UsageSumsSchema,
} from "../../../gen/parley/console/v1/usage_pb.js";
import {
  type Latency,
  type LatencyPoint,
  type Span,
  totalOf,
  type UsageRow,
  type UsageSums,
} from "../../ledger/usage-store.ts";
import { optionalTime } from "./account-messages.ts";

/** The sums of one report, with their total. */
export function toSummaryMessage(
  rows: readonly UsageRow[],
  { sinceMs, untilMs }: Span,
): MessageInitShape<typeof SummarizeUsageResponseSchema> {
  return {
    rows: rows.map(toRowMessage),
    total: toSumsMessage(totalOf(rows)),
    since: timestampFromMs(sinceMs),
    until: timestampFromMs(untilMs),
  };
}

/** How long completions took. */
export function toLatencyMessage({
  overall,
  points,
  sinceMs,
}: Latency): MessageInitShape<typeof GetLatencyResponseSchema> {
  return {
    ...(overall !== undefined && { overall: toPointMessage(overall) }),
    points: points.map(toPointMessage),
    ...optionalTime("since", sinceMs),
  };
}

function toRowMessage({ group, name = "", stepMs, sums }: UsageRow): MessageInitShape<typeof UsageRowSchema> {
  return { group, name, ...optionalTime("stepTime", stepMs), sums: toSumsMessage(sums) };
}

function toSumsMessage(sums: UsageSums): MessageInitShape<typeof UsageSumsSchema> {
  return {
    completions: BigInt(sums.completions),
    failed: BigInt(sums.failed),
    partial: BigInt(sums.partial),
    estimated: BigInt(sums.estimated),
    promptTokens: BigInt(sums.promptTokens),
    cachedTokens: BigInt(sums.cachedTokens),
    completionTokens: BigInt(sums.completionTokens),
    reasoningTokens: BigInt(sums.reasoningTokens),
    imageTokens: BigInt(sums.imageTokens),
    costMicroUsd: BigInt(sums.costMicroUsd),
  };
}

function toPointMessage({
  stepMs,
  served,
  durationMs,
  firstContentMs,
}: LatencyPoint): MessageInitShape<typeof LatencyPointSchema> {
  return {
    ...optionalTime("stepTime", stepMs),
    served: BigInt(served),
    durationMs,
    ...(firstContentMs !== undefined && { firstContentMs }),
  };
}

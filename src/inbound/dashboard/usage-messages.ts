import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LatencyPointSchema, UsageRowSchema, UsageSumsSchema } from "../../../gen/parley/console/v1/usage_pb.js";
import { invalidField } from "../../core/failure.ts";
import { offsetsOf, type ZoneOffsets } from "../../ledger/time-zone.ts";
import type { LatencyPoint, Span, UsageRow, UsageSums } from "../../ledger/usage-store.ts";
import { optionalTime } from "./account-messages.ts";

const MAX_ZONE_LENGTH = 64;

/** The offsets of a time zone; undefined for UTC. Throws `invalid_request` for an unknown one. */
export function readZone(name: string, span: Span): ZoneOffsets | undefined {
  if (name === "") return undefined;
  try {
    if (name.length <= MAX_ZONE_LENGTH) return offsetsOf(name, span);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
  }
  throw invalidField("time_zone", "is not an IANA time zone, such as Europe/Berlin");
}

/** The sums of a group and step. */
export function toRowMessage({ group, name = "", stepMs, sums }: UsageRow): MessageInitShape<typeof UsageRowSchema> {
  return { group, name, ...optionalTime("stepTime", stepMs), sums: toSumsMessage(sums) };
}

export function toSumsMessage(sums: UsageSums): MessageInitShape<typeof UsageSumsSchema> {
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
    ownCostMicroUsd: BigInt(sums.ownCostMicroUsd),
    refused: BigInt(sums.refused),
  };
}

/** The durations of a step. */
export function toPointMessage({
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

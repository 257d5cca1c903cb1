import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Limits as LimitsMessage, LimitsSchema } from "../../../gen/parley/console/v1/limits_pb.js";
import type { Limits } from "../../core/principal.ts";

/** Limits from a request. What is too large to be one is found by `checkLimits`. */
export function fromLimitsMessage(message: LimitsMessage): Limits {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetMicroUsd } = message;
  return {
    requestsPerMinute: toNumber(requestsPerMinute),
    tokensPerMinute: toNumber(tokensPerMinute),
    concurrentRequests: toNumber(concurrentRequests),
    monthlyBudgetMicroUsd: toNumber(monthlyBudgetMicroUsd),
  };
}

/** Limits for an answer: absent where there is none. */
export function toLimitsMessage(limits: Limits): MessageInitShape<typeof LimitsSchema> {
  const given = Object.entries(limits).filter((entry): entry is [keyof Limits, number] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, BigInt(value)]));
}

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

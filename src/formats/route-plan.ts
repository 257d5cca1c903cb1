import { durationMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { type RoutePlan, RouteReason, type RouteStep } from "../../gen/parley/v1/route_pb.js";
import type { NameOf } from "./format.ts";
import { writeLosses } from "./report.ts";

/** A plan in JSON, the same for all formats but for the names of request fields. */
export function writeRoutePlan(plan: RoutePlan, nameOf: NameOf): object {
  const { model, aliases, policy, affinity, steps, leftOut, promptTokens, reservedTokens, reservedMicroUsd } = plan;
  return {
    object: "route_plan",
    model,
    aliases: aliases.map((alias) => ({ name: alias.name, model: alias.model })),
    policy: policy === "" ? null : policy,
    affinity,
    steps: steps.map((step) => writeStep(step, nameOf)),
    left_out: leftOut.map((step) => writeStep(step, nameOf)),
    prompt_tokens: Number(promptTokens),
    reserved_tokens: Number(reservedTokens),
    reserved_usd: toUsd(reservedMicroUsd),
    refusals: plan.refusals.map(({ reason, message, retryDelay }) => ({
      reason: toWord(ErrorReason[reason]),
      message,
      retry_after_ms: retryDelay === undefined ? null : durationMs(retryDelay),
    })),
  };
}

function writeStep(step: RouteStep, nameOf: NameOf): object {
  const { model, reason, message, provider, region, retention, figures, refusal, price, worstCaseMicroUsd } = step;
  return {
    model,
    reason: toWord(RouteReason[reason]),
    message,
    provider,
    region: region === "" ? null : region,
    retention: retention === "" ? null : retention,
    ...(figures !== undefined && {
      weight: figures.weight,
      in_flight: figures.inFlight,
      expected_ms: figures.expectedMs === undefined ? null : Math.round(figures.expectedMs),
      usual_cost_usd: toUsd(figures.usualCostMicroUsd),
    }),
    ...writeLosses(step, nameOf),
    refusal: refusal === "" ? null : refusal,
    ...(price !== undefined && {
      input_usd_per_mtok: toUsd(price.inputMicroUsdPerMtok),
      output_usd_per_mtok: toUsd(price.outputMicroUsdPerMtok),
    }),
    worst_case_usd: toUsd(worstCaseMicroUsd),
  };
}

/** A value of an enum; a core of a later version may send others. */
function toWord(name: string | undefined): string {
  return (name ?? "UNSPECIFIED").toLowerCase();
}

function toUsd(microUsd: bigint | undefined): number | null {
  return microUsd === undefined ? null : Number(microUsd) / 1_000_000;
}

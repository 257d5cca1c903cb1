import { durationMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { type RoutePlan, RouteReason, type RouteStep } from "../../gen/parley/v1/route_pb.js";
import type { NameOf } from "./format.ts";
import { type LossesJson, writeLosses } from "./report.ts";

/** A plan in JSON. */
export interface RoutePlanJson {
  readonly object: "route_plan";
  readonly model: string;
  readonly aliases: readonly { readonly name: string; readonly model: string }[];
  readonly policy: string | null;
  readonly affinity: boolean;
  readonly steps: readonly RouteStepJson[];
  readonly left_out: readonly LeftOutJson[];
  readonly prompt_tokens: number;
  readonly reserved_tokens: number;
  readonly reserved_usd: number | null;
  readonly refusals: readonly {
    readonly reason: string;
    readonly message: string;
    readonly retry_after_ms: number | null;
  }[];
}

/** One model of a plan in JSON. */
interface RouteStepJson extends LeftOutJson, LossesJson {
  readonly refusal: string | null;
  readonly worst_case_usd: number | null;
}

/** A model that would not be tried, in JSON. */
interface LeftOutJson {
  readonly model: string;
  readonly reason: string;
  readonly message: string;
  readonly provider: string;
  readonly region: string | null;
  readonly retention: string | null;
  readonly weight?: number;
  readonly in_flight?: number;
  readonly expected_ms?: number | null;
  readonly usual_cost_usd?: number | null;
  readonly input_usd_per_mtok?: number | null;
  readonly output_usd_per_mtok?: number | null;
}

/** Writes a plan. Formats differ only in the names of request fields. */
export function writeRoutePlan(plan: RoutePlan, nameOf: NameOf): RoutePlanJson {
  const { model, aliases, policy, affinity, steps, leftOut, promptTokens, reservedTokens, reservedMicroUsd } = plan;
  return {
    object: "route_plan",
    model,
    aliases: aliases.map((alias) => ({ name: alias.name, model: alias.model })),
    policy: policy === "" ? null : policy,
    affinity,
    steps: steps.map((step) => writeStep(step, nameOf)),
    left_out: leftOut.map(writeFacts),
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

function writeStep(step: RouteStep, nameOf: NameOf): RouteStepJson {
  const { refusal, worstCaseMicroUsd } = step;
  return {
    ...writeFacts(step),
    ...writeLosses(step, nameOf),
    refusal: refusal === "" ? null : refusal,
    worst_case_usd: toUsd(worstCaseMicroUsd),
  };
}

function writeFacts({ model, reason, message, provider, region, retention, figures, price }: RouteStep): LeftOutJson {
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
    ...(price !== undefined && {
      input_usd_per_mtok: toUsd(price.inputMicroUsdPerMtok),
      output_usd_per_mtok: toUsd(price.outputMicroUsdPerMtok),
    }),
  };
}

/** The name of an enum's value in lower case. A core of a later version may send unknown values. */
function toWord(name: string | undefined): string {
  return (name ?? "UNSPECIFIED").toLowerCase();
}

function toUsd(microUsd: bigint | undefined): number | null {
  return microUsd === undefined ? null : Number(microUsd) / 1_000_000;
}

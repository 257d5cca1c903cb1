import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Report } from "../../gen/parley/v1/report_pb.js";
import { type Attempt, fromAttemptMessage } from "../core/attempt.ts";
import type { NameOf } from "./format.ts";

/**
 * The `parley` object of an answer: facts for which no vendor's format has a field. `nameOf`: the caller's names of request fields;
 * `leftOut`: names of the answer's content that the format cannot express.
 */
export function writeReport(report: Report, nameOf: NameOf, leftOut: readonly string[] = []): object {
  return {
    attempts: report.attempts.map((each) => writeAttempt(fromAttemptMessage(each))),
    ...writeLosses(report, nameOf),
    ...(leftOut.length > 0 && { left_out: leftOut }),
    ...(report.targets.length > 0 && { targets: report.targets }),
    ...(report.costMicroUsd !== undefined && { cost_usd: Number(report.costMicroUsd) / 1_000_000 }),
  };
}

/** Request fields that were not honoured, in JSON. */
export interface LossesJson {
  readonly omitted: readonly string[];
  readonly clamped: readonly { readonly field: string; readonly requested: unknown; readonly sent: unknown }[];
}

/** Writes the request fields that were not honoured. */
export function writeLosses({ omitted, clamped }: Pick<Report, "omitted" | "clamped">, nameOf: NameOf): LossesJson {
  return {
    // Several fields of the contract may be one field in the format.
    omitted: omitted.length === 0 ? [] : [...new Set(omitted.map(({ field }) => nameOf(field)))],
    clamped: clamped.map(({ field, requested, sent }) => ({
      field: nameOf(field),
      requested: clampedValue(requested),
      sent: clampedValue(sent),
    })),
  };
}

/** One attempt, as in `parley.attempts` and `error.attempts`. */
export function writeAttempt(of: Attempt): object {
  return {
    model: of.model,
    outcome: of.outcome,
    upstream_status: of.upstreamStatus ?? null,
    reason: of.reason,
    start_ms: of.startMs,
    duration_ms: of.durationMs,
    ...(of.ownCredential === true && { own_credential: true }),
  };
}

/** A clamped value as the format writes it: efforts in lower case, times in minutes or hours. */
function clampedValue(value: Value | undefined): unknown {
  const json = value === undefined ? null : toJson(ValueSchema, value);
  if (typeof json !== "string") return json;
  const seconds = /^(\d+)s$/.exec(json)?.[1];
  if (seconds === undefined) return json.replace(/^REASONING_EFFORT_/, "").toLowerCase();
  return Number(seconds) % 3600 === 0 ? `${Number(seconds) / 3600}h` : `${Number(seconds) / 60}m`;
}

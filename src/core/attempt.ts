import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { type Attempt as AttemptMessage, AttemptOutcome } from "../../gen/parley/v1/report_pb.js";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { causeOf, reasonOf } from "./error-reason.ts";
import type { FailureCode } from "./failure.ts";

/** One call of an upstream model, or the decision not to make it. */
export interface Attempt {
  /** ID of the model. */
  readonly model: string;
  readonly outcome: "served" | "skipped" | FailureCode;
  /** `Failure.detail` of an `upstream_rejected` outcome. */
  readonly detail?: "context_length_exceeded" | undefined;
  /** Whether it was made with the account's own credential. Default: no. */
  readonly ownCredential?: true | undefined;
  /** HTTP status of the provider's response. */
  readonly upstreamStatus?: number | undefined;
  /** Why it failed or was skipped; empty when it served. */
  readonly reason: string;
  readonly durationMs: number;
  /** Since the request arrived. */
  readonly startMs: number;
  /** Since the request arrived: the first byte of the request was written to a connection. Default: not known. */
  readonly sentMs?: number | undefined;
  /** Since the request arrived: the head of the provider's response. Default: not known. */
  readonly headMs?: number | undefined;
  /** Since the request arrived: the first content of a stream. Default: there was none. */
  readonly firstContentMs?: number | undefined;
  /** Error message of the provider or the connection, without credentials; for administrators only. Default: none. */
  readonly providerError?: string | undefined;
}

/** Converts an attempt to the contract. */
export function toAttemptMessage({
  model,
  outcome,
  detail,
  upstreamStatus,
  reason,
  ownCredential,
  ...times
}: Attempt): AttemptMessage {
  return {
    $typeName: "parley.v1.Attempt",
    model,
    outcome: OUTCOMES.get(outcome) ?? AttemptOutcome.FAILED,
    failureReason:
      outcome === "served" || outcome === "skipped" ? ErrorReason.UNSPECIFIED : reasonOf({ code: outcome, detail }),
    message: reason,
    ownCredential: ownCredential === true,
    duration: toDuration(times.durationMs),
    startOffset: toDuration(times.startMs),
    ...(upstreamStatus !== undefined && { httpStatusCode: upstreamStatus }),
  };
}

/** Converts an attempt of the contract back. A reason of another version is `internal`. */
export function fromAttemptMessage(attempt: AttemptMessage): Attempt {
  const { model, outcome, failureReason, httpStatusCode, message, ownCredential, duration, startOffset } = attempt;
  const cause = causeOf(failureReason);
  return {
    model,
    outcome: WORDS.get(outcome) ?? cause?.code ?? "internal",
    ...(cause?.detail === "context_length_exceeded" && { detail: cause.detail }),
    ...(ownCredential && { ownCredential }),
    upstreamStatus: httpStatusCode,
    reason: message,
    durationMs: toMs(duration),
    startMs: toMs(startOffset),
  };
}

const OUTCOMES: ReadonlyMap<string, AttemptOutcome> = new Map([
  ["served", AttemptOutcome.SERVED],
  ["skipped", AttemptOutcome.SKIPPED],
]);
const WORDS: ReadonlyMap<AttemptOutcome, "served" | "skipped"> = new Map([
  [AttemptOutcome.SERVED, "served"],
  [AttemptOutcome.SKIPPED, "skipped"],
]);

/** A duration, rounded to microseconds: `durationFromMs` turns a fraction into parts of a nanosecond, which cannot be encoded. */
export function toDuration(ms: number): Duration {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  return {
    $typeName: "google.protobuf.Duration",
    seconds: BigInt(seconds),
    nanos: (micros - seconds * 1_000_000) * 1000,
  };
}

/** The time of whole seconds since 1970. */
export function toTimestamp(seconds: number): Timestamp {
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos: 0 };
}

/** Milliseconds of a duration with their fraction, which `durationMs` rounds; 0 for an absent one. */
export function toMs(duration: Duration | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;
}

import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { type Attempt as AttemptMessage, AttemptOutcome } from "../../gen/parley/v1/report_pb.js";

/** One call of an upstream model, with its status as `format/outcomes.ts` has it and times in milliseconds. */
export interface Attempt extends Pick<AttemptMessage, "model" | "httpStatusCode" | "message" | "ownCredential"> {
  readonly code: string;
  readonly durationMs: number;
  readonly startMs: number;
}

export function readAttempt({ model, httpStatusCode, message, ownCredential, ...of }: AttemptMessage): Attempt {
  return {
    model,
    code: codeOf(of),
    message,
    ownCredential,
    durationMs: toMs(of.duration),
    startMs: toMs(of.startOffset),
    ...(httpStatusCode !== undefined && { httpStatusCode }),
  };
}

function codeOf({ outcome, failureReason }: Pick<AttemptMessage, "outcome" | "failureReason">): string {
  if (outcome === AttemptOutcome.SERVED) return "served";
  return outcome === AttemptOutcome.SKIPPED ? "skipped" : codeOfReason(failureReason);
}

/** The failure code of a reason, by which the dashboard names and filters failures. */
function codeOfReason(reason: ErrorReason): string {
  if (reason === ErrorReason.METHOD_NOT_FOUND) return "not_found";
  if (reason === ErrorReason.CONTEXT_LENGTH_EXCEEDED) return "upstream_rejected";
  return (ErrorReason[reason] ?? "INTERNAL").toLowerCase();
}

const toMs = (duration: Duration | undefined): number => (duration === undefined ? 0 : durationMs(duration));

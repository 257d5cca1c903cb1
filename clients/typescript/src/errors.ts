import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type BadRequest_FieldViolation as FieldViolation,
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.js";
import type { ErrorReason } from "./gen/parley/v1/error_pb.js";
import { type Attempt, AttemptListSchema } from "./gen/parley/v1/report_pb.js";
import { readPushback } from "./retry.js";

export type { FieldViolation };

/** The name of a reason for failures, such as `MODEL_NOT_FOUND`. */
export type ErrorReasonName = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** A failed call: its status, and what the gateway said about it. `cause` is Connect's error. */
export class ParleyError extends Error {
  override readonly name = "ParleyError";
  declare readonly cause: ConnectError;
  /** The status of the call, such as `Code.NotFound`. */
  readonly code: Code;
  /**
   * The name of the gateway's reason, such as `MODEL_NOT_FOUND`: a value of `ErrorReason`, or one of a later version.
   * Absent when the failure is not the gateway's.
   */
  readonly reason: ErrorReasonName | (string & {}) | undefined;
  /** The ID of the call, for the operator. Absent when the gateway was not reached and the call was given none. */
  readonly requestId: string | undefined;
  /** The fields that are not valid. */
  readonly fieldViolations: readonly FieldViolation[];
  /** The upstream models that were tried or skipped, in order. */
  readonly attempts: readonly Attempt[];
  /** Whether a retry within the deadline of the call may help. */
  readonly retryable: boolean;
  /** How long to wait before another call, when the gateway said so. */
  readonly retryAfterMs: number | undefined;

  /** @param requestId the ID that was sent with the call, if any */
  constructor(cause: ConnectError, requestId?: string) {
    super(cause.rawMessage, { cause });
    const [info] = cause.findDetails(ErrorInfoSchema);
    const delay = cause.findDetails(RetryInfoSchema)[0]?.retryDelay;
    const pushbackMs = readPushback(cause);
    this.code = cause.code;
    this.reason = info?.reason;
    this.requestId = info?.metadata["request_id"] ?? cause.metadata.get("x-request-id") ?? requestId;
    this.fieldViolations = cause.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations);
    this.attempts = cause.findDetails(AttemptListSchema).flatMap((detail) => detail.attempts);
    this.retryable = pushbackMs === undefined ? delay !== undefined || this.code === Code.Unavailable : pushbackMs >= 0;
    this.retryAfterMs = delay === undefined ? undefined : durationMs(delay);
  }
}

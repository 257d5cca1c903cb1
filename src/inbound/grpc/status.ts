import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { Failure } from "../../core/failure.ts";
import type { LimitFacts } from "../../core/limiter.ts";
import { requestIdFrom } from "../calls.ts";
import { errorDetails } from "../error-details.ts";
import { FAILURE_TABLE, isFinal, retryAfterMs } from "../failure-table.ts";
import { toLimitHeaders } from "../headers.ts";

/**
 * Limit of bytes of error details. They are sent in the trailers as base64, beside the message: clients refuse trailers of more
 * than 8 KiB, and the HTTP/2 library silently drops those of more than 64 KiB.
 */
const MAX_DETAILS_BYTES = 4096;
const SHORT_REASON_CHARS = 60;

/** Facts in the trailers of a failed call: request ID and, if known, the caller's limits. */
export interface CallFacts {
  readonly requestId: string;
  readonly limits: LimitFacts | undefined;
  /** Whether the metadata was sent with a first message. Trailers do not repeat it: clients join both to one value. */
  readonly hasMetadata?: boolean;
  /** Time until the call's deadline; undefined without one. */
  readonly leftMs?: number | undefined;
}

/** Converts a failure into the status of a call, with `google.rpc` details and the facts in the trailers. */
export function toServiceError(failure: Failure, { requestId, limits, hasMetadata = false }: CallFacts): ServiceError {
  const code = FAILURE_TABLE[failure.code].grpc;
  const metadata = new Metadata();
  if (!hasMetadata) metadata.set("x-request-id", requestId);
  if (!hasMetadata && limits !== undefined)
    for (const [name, value] of toLimitHeaders(limits)) metadata.set(name, value);
  metadata.set("grpc-status-details-bin", encodeDetails(failure, requestId));
  return Object.assign(new Error(failure.message), { code, details: failure.message, metadata });
}

/**
 * The same for a completion, with `grpc-retry-pushback-ms` for clients that retry by a policy and do not read RetryInfo: the
 * wait, or -1 when a retry does not help or the deadline passes before it: such a client sleeps until the deadline, and loses
 * this failure.
 */
export function toCompletionError(failure: Failure, facts: CallFacts): ServiceError {
  const error = toServiceError(failure, facts);
  const waitMs = isFinal(failure) ? undefined : retryAfterMs(failure);
  const isInTime = waitMs !== undefined && waitMs < (facts.leftMs ?? Infinity);
  error.metadata.set("grpc-retry-pushback-ms", isInTime ? String(Math.ceil(waitMs)) : "-1");
  return error;
}

/** Converts the refusal of a call without a key into its status. */
export function toRefusal(reason: unknown, call: { readonly metadata: Metadata }): ServiceError {
  const requestId = requestIdFrom(call.metadata.get("x-request-id")[0]?.toString());
  return toServiceError(Failure.from(reason), { requestId, limits: undefined });
}

/** Encodes all details; beyond the limit with shortened reasons, then without lists. */
function encodeDetails(failure: Failure, requestId: string): Buffer {
  const shorter = failure.attempts.map((attempt) => ({
    ...attempt,
    reason: attempt.reason.slice(0, SHORT_REASON_CHARS).toWellFormed(),
  }));
  const versions = [
    () => failure,
    () => failure.with({ attempts: shorter }),
    () => failure.with({ attempts: [], violations: [] }),
  ];
  let bytes: Buffer = Buffer.alloc(0);
  for (const version of versions) {
    bytes = encode(version(), requestId);
    if (bytes.length <= MAX_DETAILS_BYTES) break;
  }
  return bytes;
}

function encode(failure: Failure, requestId: string): Buffer {
  const { grpc: code } = FAILURE_TABLE[failure.code];
  const details = errorDetails(failure, requestId).map(({ desc, value }) => anyPack(desc, create(desc, value)));
  return Buffer.from(toBinary(StatusSchema, create(StatusSchema, { code, message: failure.message, details })));
}

import { createRegistry, fromBinary, type Message } from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { type Metadata, type ServiceError, status as Status } from "@grpc/grpc-js";
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type RetryInfo,
  RetryInfoSchema,
} from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { type AttemptList, AttemptListSchema } from "../../../gen/parley/v1/report_pb.js";
import { Failure, type FailureCode, type FailureDetail } from "../../core/failure.ts";
import type { LimitFacts } from "../../core/limiter.ts";
import { FAILURE_TABLE } from "../failure-table.ts";
import { readLimitHeaders } from "../limit-headers.ts";

const REGISTRY = createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema, AttemptListSchema);

const DETAILS: ReadonlySet<string> = new Set<FailureDetail>(["context_length_exceeded", "upstream_overloaded"]);

/** The limits that metadata tells of; undefined when it tells of none. */
export function limitsIn(metadata: Metadata): LimitFacts | undefined {
  const facts = readLimitHeaders((name) => metadata.get(name)[0]?.toString());
  return facts.requests === undefined && facts.tokens === undefined ? undefined : facts;
}

/** The failure that a core ended a call with, as it was there; undefined when the status is not a core's own word. */
export function failureSaid({ metadata, details }: ServiceError): Failure | undefined {
  const bytes = metadata.get("grpc-status-details-bin")[0];
  if (!Buffer.isBuffer(bytes)) return undefined;
  let said: Map<string, Message>;
  try {
    const unpacked = fromBinary(StatusSchema, bytes).details.flatMap((any) => anyUnpack(any, REGISTRY) ?? []);
    said = new Map(unpacked.map((message) => [message.$typeName, message]));
  } catch {
    return undefined;
  }
  const info = said.get(ErrorInfoSchema.typeName) as ErrorInfo | undefined;
  if (info?.domain !== "parley") return undefined;
  const code = info.reason.toLowerCase();
  if (!isCode(code)) return undefined;
  const detail = info.metadata["error_code"];
  const wait = (said.get(RetryInfoSchema.typeName) as RetryInfo | undefined)?.retryDelay;
  const limits = limitsIn(metadata);
  return new Failure(code, details, {
    violations: (said.get(BadRequestSchema.typeName) as BadRequest | undefined)?.fieldViolations ?? [],
    attempts: (said.get(AttemptListSchema.typeName) as AttemptList | undefined)?.attempts ?? [],
    ...(isDetail(detail) && { detail }),
    ...(wait !== undefined && { retryAfterMs: durationMs(wait) }),
    ...(limits !== undefined && { limits }),
  });
}

/**
 * What a status means that no core has said, but the library or something between: the core cannot be reached, is gone,
 * or has refused the message unread. `begun`: some of the answer had come.
 *
 * A core that goes away is `overloaded`, also in the middle of an answer: it is this service that fails, no provider did,
 * and waiting helps. A core that ends its calls at the end of a drain says the same.
 */
export function failureUnsaid(cause: ServiceError, begun: boolean): Failure {
  const { code } = cause;
  // CANCELLED is how a core that is closing ends its calls.
  if (code === Status.UNAVAILABLE || code === Status.CANCELLED)
    return begun
      ? new Failure("overloaded", "The connection was lost in the middle of the answer.", { cause })
      : noCore(cause);
  if (code === Status.DEADLINE_EXCEEDED)
    return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.", { cause });
  // This side takes messages of any size, so it was the request that was too large.
  if (code === Status.RESOURCE_EXHAUSTED && !begun)
    return new Failure("request_too_large", "The request is larger than the service takes.", { cause });
  return new Failure("internal", "The gateway failed unexpectedly.", { cause });
}

/** The failure of a call that no core has answered. */
export function noCore(cause?: Error): Failure {
  return new Failure("overloaded", "The service cannot be reached at the moment. Try again shortly.", {
    retryAfterMs: 1000,
    cause,
  });
}

function isCode(text: string): text is FailureCode {
  return Object.hasOwn(FAILURE_TABLE, text);
}

function isDetail(text: string | undefined): text is FailureDetail {
  return text !== undefined && DETAILS.has(text);
}

import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { AttemptListSchema } from "../../gen/parley/v1/report_pb.js";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import { reasonOf } from "../core/error-reason.ts";
import { toAttemptMessage } from "../core/attempt.ts";
import type { Failure } from "../core/failure.ts";
import { errorCode, FAILURE_TABLE, retryAfterMs } from "./failure-table.ts";

/** One detail message of an error status, as Connect takes it and gRPC packs it. */
export interface ErrorDetail<D extends DescMessage = DescMessage> {
  readonly desc: D;
  readonly value: MessageInitShape<D>;
}

/** Details of a failure's status: always ErrorInfo, others where they apply. */
export function errorDetails(failure: Failure, requestId: string): ErrorDetail[] {
  const metadata: Record<string, string> = { request_id: requestId };
  const code = errorCode(failure);
  if (code !== null) metadata["error_code"] = code;
  const details: ErrorDetail[] = [
    detail(ErrorInfoSchema, { reason: ErrorReason[reasonOf(failure)], domain: "parley", metadata }),
  ];
  if (failure.violations.length > 0)
    details.push(detail(BadRequestSchema, { fieldViolations: [...failure.violations] }));
  const waitMs = retryAfterMs(failure);
  if (waitMs !== undefined) details.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(waitMs)) }));
  if (failure.attempts.length > 0)
    details.push(detail(AttemptListSchema, { attempts: failure.attempts.map(toAttemptMessage) }));
  return details;
}

function detail<D extends DescMessage>(desc: D, value: MessageInitShape<D>): ErrorDetail {
  return { desc, value };
}

/** A failure as Connect's handlers throw it: its code is the gRPC status of the failure table, by number. */
export function toConnectError(failure: Failure, requestId: string): ConnectError {
  const { grpc } = FAILURE_TABLE[failure.code];
  return new ConnectError(failure.message, grpc, undefined, errorDetails(failure, requestId), failure);
}

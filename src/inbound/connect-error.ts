import { ConnectError } from "@connectrpc/connect";
import type { Failure } from "../core/failure.ts";
import { errorDetails } from "./error-details.ts";
import { FAILURE_TABLE } from "./failure-table.ts";

/** A failure as Connect's handlers throw it: its code is the gRPC status of the failure table, by number. */
export function toConnectError(failure: Failure, requestId: string): ConnectError {
  const { grpc } = FAILURE_TABLE[failure.code];
  return new ConnectError(failure.message, grpc, undefined, errorDetails(failure, requestId), failure);
}

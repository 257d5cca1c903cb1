import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import type { Failure } from "../core/failure.ts";
import { errorDetails } from "../edge/error-details.ts";
import { FAILURE_TABLE } from "../edge/failure-table.ts";

/** A failure as the status that ends a call, with its `google.rpc` details and the request's ID in the trailers. */
export function toServiceError(failure: Failure, requestId: string): ServiceError {
  const code = FAILURE_TABLE[failure.code].grpc;
  const details = errorDetails(failure, requestId).map(({ desc, value }) => anyPack(desc, create(desc, value)));
  const metadata = new Metadata();
  metadata.set("x-request-id", requestId);
  const whole = create(StatusSchema, { code, message: failure.message, details });
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, whole)));
  return Object.assign(new Error(failure.message), { code, details: failure.message, metadata });
}

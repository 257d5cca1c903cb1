import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";

/**
 * Creates the error that a service would return for an invalid field, for text that cannot be encoded in the request.
 */
export function failureOfField(field: string, description: string): ConnectError {
  const value = { fieldViolations: [{ field, description }] };
  return new ConnectError(description, Code.InvalidArgument, undefined, [{ desc: BadRequestSchema, value }]);
}

import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";

/** A failure like a service's, about a text that cannot even be sent because it is no number. */
export function failureOfField(field: string, description: string): ConnectError {
  const value = { fieldViolations: [{ field, description }] };
  return new ConnectError(description, Code.InvalidArgument, undefined, [{ desc: BadRequestSchema, value }]);
}

import { ConnectError } from "@connectrpc/connect";
import { expect } from "vitest";
import { BadRequestSchema } from "../../../gen/google/rpc/error_details_pb.js";

/** The error of a call that has to fail. */
export async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => expect.fail("the call succeeded"),
    (reason: unknown) => ConnectError.from(reason),
  );
}

/** The field that a call is refused for. */
export async function fieldOf(call: Promise<unknown>): Promise<string | undefined> {
  return (await errorOf(call)).findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field;
}

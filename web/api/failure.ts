import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** A failed call, as shown to the user. */
export interface Failing {
  /** General message, for errors without a field. */
  readonly message: string;
  /** Errors by field name in the request, such as `limits.requests_per_minute`. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Converts an error of a call. Undefined for a call that the user cancelled. */
export function readFailure(error: unknown): Failing | undefined {
  const failure = ConnectError.from(error);
  if (failure.code === Code.Canceled) return undefined;
  const violations = failure.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  const fields = new Map(violations.map(({ field, description }) => [field, sentence(description)]));
  return { message: isFromParley(failure) ? failure.rawMessage : UNREACHABLE, fields };
}

const UNREACHABLE = "Can’t reach Parley. Check your connection and that Parley is running.";

/** Whether a call failed because the password must be confirmed again. */
export function needsPassword(error: ConnectError): boolean {
  return infoOf(error)?.metadata["error_code"] === "reauthentication_required";
}

/** Whether a retry of the call may succeed. */
export function isTransient(error: unknown): boolean {
  const failure = ConnectError.from(error);
  return failure.code === Code.Unavailable || !isFromParley(failure);
}

/** Whether no response of Parley has arrived: it is not running, or a proxy refused the call. */
export function isUnreachable(error: unknown): boolean {
  const failure = ConnectError.from(error);
  return failure.code !== Code.Canceled && !isFromParley(failure);
}

/** Whether the error comes from Parley. Error texts of browsers and proxies are not shown to users. */
function isFromParley(failure: ConnectError): boolean {
  return infoOf(failure)?.domain === "parley";
}

function infoOf(failure: ConnectError) {
  return failure.findDetails(ErrorInfoSchema)[0];
}

/** Turns a field description into a sentence. Services describe a field as "must be …". */
function sentence(description: string): string {
  const text = description.charAt(0).toUpperCase() + description.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

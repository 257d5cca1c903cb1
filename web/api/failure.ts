import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** What went wrong, for the person who asked. */
export interface Failing {
  /** What cannot be said at a field. */
  readonly message: string;
  /** By the field's name in the request, such as `limits.requests_per_minute`. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Reads an error of a call. Undefined for one that the person caused on purpose, by closing a question. */
export function readFailure(error: unknown): Failing | undefined {
  const failure = ConnectError.from(error);
  if (failure.code === Code.Canceled) return undefined;
  const violations = failure.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  const fields = new Map(violations.map(({ field, description }) => [field, sentence(description)]));
  return { message: isOurs(failure) ? failure.rawMessage : UNREACHABLE, fields };
}

const UNREACHABLE = "Can’t reach Parley. Check your connection and that Parley is running.";

/** Whether an error says that the password has to be given again first. */
export function needsPassword(error: ConnectError): boolean {
  return infoOf(error)?.metadata["error_code"] === "reauthentication_required";
}

/** Whether the same call may work a moment later. */
export function isTransient(error: unknown): boolean {
  const failure = ConnectError.from(error);
  return failure.code === Code.Unavailable || !isOurs(failure);
}

/** Whether no answer of Parley has arrived: it is not running, or something between refuses. */
export function isUnreachable(error: unknown): boolean {
  const failure = ConnectError.from(error);
  return failure.code !== Code.Canceled && !isOurs(failure);
}

/** Whether Parley itself has answered: what the browser and proxies say is not meant for people. */
function isOurs(failure: ConnectError): boolean {
  return infoOf(failure)?.domain === "parley";
}

function infoOf(failure: ConnectError) {
  return failure.findDetails(ErrorInfoSchema)[0];
}

/** The services say of a field what it must be or is; beside the field it stands as a sentence of its own. */
function sentence(description: string): string {
  const text = description.charAt(0).toUpperCase() + description.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

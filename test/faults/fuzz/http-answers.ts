import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import { causeOf } from "../../../src/core/error-reason.ts";
import { fromBinary } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import type { FailureCode } from "../../../src/core/failure.ts";
import { FAILURE_TABLE } from "../../../src/inbound/failure-table.ts";
import { type RawResponse, takeResponse } from "../../product/support/raw-http.ts";
import { PLANTED, STACK_TRACE } from "./product-under-test.ts";

/** Codes that a response must not have: the caller cancelled, or the gateway failed. */
const NEVER: ReadonlySet<string> = new Set<FailureCode>(["cancelled", "internal"]);

/** Details that replace a row's code. */
const DETAILS = ["context_length_exceeded", "upstream_overloaded"];

/** Rows of the failure table that a response may have, as OpenAI's clients see them; a 401 has no code. */
const ROWS: ReadonlySet<string> = new Set([
  ...Object.entries(FAILURE_TABLE)
    .filter(([name]) => !NEVER.has(name))
    .flatMap(([name, { http, type, code }]) =>
      name === "unauthenticated"
        ? [row(http, type, undefined)]
        : [code, ...DETAILS].map((each) => row(http, type, each)),
    ),
  // Node's HTTP parser refuses these before there is a request.
  row(431, "invalid_request_error", null),
  row(408, "invalid_request_error", null),
]);

function row(status: number, type: string, code: string | null | undefined): string {
  return `${status} ${type} ${code}`;
}

/** Returns the flaw of a response; undefined if it is permitted. */
export function flawOfAnswer(answer: RawResponse): string | undefined {
  const { status, headers, body } = answer;
  if (STACK_TRACE.test(body)) return `a stack trace: ${body}`;
  if (PLANTED.some((secret) => body.includes(secret) || JSON.stringify(headers).includes(secret))) return "a secret";
  if (status === 204) return body === "" ? undefined : "a 204 with a body";
  const type = headers["content-type"] ?? "";
  if (type.startsWith("text/event-stream")) return status === 200 ? flawOfEvents(body) : `a stream with ${status}`;
  if (type.startsWith("application/connect+"))
    return status === 200 ? flawOfConnectEnd(body) : `a Connect stream with ${status}`;
  if (status === 200) return type.startsWith("application/json") && !isJson(body) ? `no JSON: ${body}` : undefined;
  // A page of the dashboard for a browser with an unknown host name.
  if (status === 403 && body.startsWith("The dashboard is not served for the host")) return undefined;
  if (type !== "application/json") return `${status} is no JSON but ${type}: ${body}`;
  return isJson(body) ? flawOfRefusal(answer) : `no JSON: ${body}`;
}

/** Checks all responses on a connection; an incomplete one at its end is searched as text. */
export function flawOfAnswers(bytes: Buffer): string | undefined {
  if (STACK_TRACE.test(bytes.toString("latin1"))) return `a stack trace: ${bytes.toString("latin1")}`;
  for (let taken = takeResponse(bytes); taken !== undefined; taken = takeResponse(taken.rest)) {
    const flaw = flawOfAnswer(taken.response);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

function flawOfRefusal({ status, headers, body }: RawResponse): string | undefined {
  const said = JSON.parse(body) as ConnectError & { error?: OpenAiError };
  if (said.error === undefined) return flawOfConnectError(said, body);
  const flaw = flawOfError(status, said.error);
  if (flaw !== undefined) return flaw;
  if ((status === 429 || status === 503) && headers["retry-after"] === undefined)
    return `${status} without Retry-After`;
  return undefined;
}

interface OpenAiError {
  readonly type?: string;
  readonly code?: string | null;
  readonly message?: unknown;
}

function flawOfError(status: number | undefined, error: OpenAiError): string | undefined {
  const { type = "", code, message } = error;
  if (typeof message !== "string" || message === "") return `an error without a message: ${JSON.stringify(error)}`;
  const rows = status === undefined ? [...ROWS].map((each) => each.slice(4)) : [...ROWS];
  const found = status === undefined ? `${type} ${code}` : row(status, type, code);
  return rows.includes(found) ? undefined : `outside the failure table: ${found}: ${message}`;
}

/** Every event is a chunk, or an error as the last one; a complete stream without an error ends with the marker. */
function flawOfEvents(body: string): string | undefined {
  const events = body.split("\n\n").filter((event) => event !== "" && !event.startsWith(":"));
  const last = events.at(-1) ?? "";
  if (last !== "data: [DONE]") {
    const error = isJson(last.slice(6)) ? (JSON.parse(last.slice(6)) as { error?: OpenAiError }).error : undefined;
    return error === undefined ? `a stream without an end: ${last}` : flawOfError(undefined, error);
  }
  const broken = events.slice(0, -1).find((event) => !event.startsWith("data: {") || !isJson(event.slice(6)));
  return broken === undefined ? undefined : `an event that is none: ${broken}`;
}

/** First bytes of the last message of a Connect stream: a flag, and the upper half of its length. */
const CONNECT_END = "\u0002\u0000\u0000";

/** The last message of a Connect stream is JSON: empty or an error. */
function flawOfConnectEnd(body: string): string | undefined {
  const end = body.slice(body.lastIndexOf(CONNECT_END) + CONNECT_END.length + 2);
  if (!isJson(end)) return `a Connect stream without an end: ${body.slice(-200)}`;
  const { error } = JSON.parse(end) as { error?: ConnectError };
  return error === undefined ? undefined : flawOfConnectError(error, end);
}

interface ConnectError {
  readonly code?: string;
  readonly details?: readonly ConnectDetail[];
}

interface ConnectDetail {
  readonly type: string;
  readonly value: string;
}

function flawOfConnectError({ code, details = [] }: ConnectError, body: string): string | undefined {
  if (typeof code !== "string") return `a refusal in no form that we know: ${body}`;
  const info = details.find(({ type }) => type === ErrorInfoSchema.typeName);
  if (info === undefined) return `a refusal without details: ${body}`;
  const { reason } = fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64"));
  const name = causeOf(ErrorReason[reason as keyof typeof ErrorReason])?.code;
  return name !== undefined && !NEVER.has(name) ? undefined : `outside the failure table: ${reason}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

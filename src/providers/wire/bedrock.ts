import type { Failure } from "../../core/failure.ts";
import { readMessage, type SubjectWords, tellSubject } from "./error-words.ts";
import type { EventStreamMessage } from "./event-stream.ts";
import { object, parsed, string } from "./json.ts";
import { keepAll } from "./redaction.ts";
import type { Refusal } from "./response.ts";
import { type ErrorSubject, type InBand, readRetryAdvice, toInnerFailure, toStatusFailure } from "./status-failure.ts";

/*
 * Paths and errors that the operations of Amazon Bedrock's runtime share. Sources: its API reference (InvokeModel, Converse, CountTokens,
 * common errors), the models of the AWS SDK 3.1164, and "Troubleshooting API error codes" of its user guide, November 2026.
 */

/** Path of an operation on a model: its ID, the ID of an inference profile, or the ARN of either. */
export function toModelPath(model: string, operation: string): string {
  const segment = encodeURIComponent(model).replace(/[!'()*]/g, toEscape);
  return `/model/${segment}/${operation}`;
}

const toEscape = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** Prefix of an inference profile's name, before the model: the geography that may serve it. */
const GEOGRAPHY = /^(?:us|us-gov|eu|apac|jp|au|ca|sa|me|af|il|global)\./;

/** Path that counts tokens. It accepts only foundation models, so the geography is removed. */
export function toCountPath(model: string): string {
  return toModelPath(model.replace(GEOGRAPHY, ""), "count-tokens");
}

/** Equivalent HTTP status by error type, for errors inside a 2xx response and for errors whose own status is misleading. */
const STATUS_BY_TYPE: ReadonlyMap<string, number> = new Map([
  ["accessdeniedexception", 403],
  ["expiredtokenexception", 401],
  ["incompletesignatureexception", 401],
  ["invalidsignatureexception", 401],
  ["missingauthenticationtokenexception", 401],
  ["unrecognizedclientexception", 401],
  ["internalserverexception", 500],
  // 424: the model failed, not the request.
  ["modelerrorexception", 500],
  ["modelstreamerrorexception", 500],
  ["modeltimeoutexception", 504],
  ["resourcenotfoundexception", 404],
  ["servicequotaexceededexception", 429],
  ["serviceunavailableexception", 503],
  ["throttlingexception", 429],
  ["validationexception", 400],
]);

const SUBJECT_BY_TYPE: ReadonlyMap<string, ErrorSubject> = new Map([
  ["servicequotaexceededexception", "lasting"],
  ["serviceunavailableexception", "overload"],
]);

/** Kinds of ValidationException, which only the message tells: the prompt, our request, or the configured model. */
const WORDS: SubjectWords = [
  ["context", /input is too long|prompt is too long|maximum context length|input tokens exceeded/i],
  ["account", /model identifier is invalid|on-demand throughput isn.t supported|end of its life|access to the model/i],
  ["translation", /extra inputs are not permitted|malformed input request|extraneous key/i],
];

/** A daily quota in the message of a ThrottlingException. */
const LASTING: SubjectWords = [["lasting", /tokens per day/i]];

/** Maps a refusal to a Failure. Never throws, whatever the body is. */
export function toBedrockFailure(
  { status, headers, body }: Refusal,
  redact = keepAll,
  { verbatim }: { readonly verbatim: boolean } = { verbatim: false },
): Failure {
  const header = headers["x-amzn-errortype"];
  const json = object(parsed(body));
  // Header such as "ThrottlingException:http://internal.amazon.com/coral/…"; without it, the body has "…#ThrottlingException".
  const type = (string(header).split(":", 1)[0] || string(json["__type"]).replace(/^.*#/, "")).trim();
  return toStatusFailure({ ...readRetryAdvice(headers), ...readError(type, json, status), verbatim }, redact);
}

/** Maps an exception in an event stream to a Failure. */
export function toExceptionFailure({ type, data }: EventStreamMessage, where: InBand): Failure {
  return toInnerFailure(readError(type, parsed(data), 500), where);
}

function readError(type: string, body: unknown, status: number) {
  const name = type.toLowerCase();
  const json = object(body);
  const message = readMessage(json["message"] ?? json["Message"]);
  const known = STATUS_BY_TYPE.get(name) ?? status;
  const told = tellSubject(SUBJECT_BY_TYPE.get(name), { message, words: known === 429 ? LASTING : WORDS });
  return { status: known, message, ...told };
}

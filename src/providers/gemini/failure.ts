import { Failure } from "../../core/failure.ts";
import { readMessage, type SubjectWords, tellSubject } from "../wire/error-words.ts";
import { array, type Json, object, parsed, string } from "../wire/json.ts";
import { keepAll } from "../wire/redaction.ts";
import type { Refusal } from "../wire/response.ts";
import {
  type ErrorSubject,
  type InBand,
  readRetryAdvice,
  toInnerFailure,
  toStatusFailure,
  type UpstreamError,
} from "../wire/status-failure.ts";

/** HTTP status by the provider's status name, for errors without a numeric code. */
const STATUS_BY_WORD: ReadonlyMap<string, number> = new Map([
  ["INVALID_ARGUMENT", 400],
  ["FAILED_PRECONDITION", 400],
  ["OUT_OF_RANGE", 400],
  ["UNAUTHENTICATED", 401],
  ["PERMISSION_DENIED", 403],
  ["NOT_FOUND", 404],
  ["ABORTED", 409],
  ["ALREADY_EXISTS", 409],
  ["RESOURCE_EXHAUSTED", 429],
  ["CANCELLED", 499],
  ["UNIMPLEMENTED", 501],
  ["UNAVAILABLE", 503],
  ["DEADLINE_EXCEEDED", 504],
]);

/**
 * Error subject by the provider's status name. FAILED_PRECONDITION: an account without funds or in an unsupported
 * region; UNAVAILABLE: an overloaded model.
 */
const SUBJECT_BY_WORD: ReadonlyMap<string, ErrorSubject> = new Map([
  ["FAILED_PRECONDITION", "account"],
  ["UNAVAILABLE", "overload"],
]);

/** Kinds of INVALID_ARGUMENT that only the message text identifies. */
const WORDS: SubjectWords = [
  ["translation", /Unknown name|Cannot find field/i],
  ["context", /input token count\b.{0,200}?\bexceeds/is],
];

/** Quota IDs of limits per day or longer. */
const LASTING_LIMIT = /Per(?:Day|Week|Month)/i;

/** A protobuf duration in JSON, such as `45.837906927s`. */
const DURATION = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

/** Error message for a signature that another account or route created. */
const REFUSED_SIGNATURE = /corrupted thought signature/i;

/** Maps an error response to a Failure. Never throws, whatever the body contains. */
export function toFailure(
  { status, headers, body }: Refusal,
  redact = keepAll,
  { verbatim }: { readonly verbatim: boolean } = { verbatim: false },
): Failure {
  const advice = readRetryAdvice(headers);
  const error = readError(parsed(body));
  const retryAfterMs = error.retryAfterMs ?? advice.retryAfterMs;
  return toStatusFailure({ ...advice, ...error, retryAfterMs, status, verbatim }, redact);
}

/** Maps an error inside a 2xx response to a Failure. Tokens that the provider has counted before it may be billed. */
export function toInBandFailure(json: unknown, where: InBand): Failure {
  const { code, status: word } = findError(json);
  const numbered = typeof code === "number" && code >= 400 && code <= 599 ? code : undefined;
  const status = numbered ?? STATUS_BY_WORD.get(string(word)) ?? 500;
  return toInnerFailure({ ...readError(json), status, billed: (where.usage?.inputTokens ?? 0) > 0 }, where);
}

/** Whether the request was rejected for a thought signature that another account or route created. */
export function isRefusedSignature(reason: unknown): boolean {
  return reason instanceof Failure && reason.code === "upstream_rejected" && REFUSED_SIGNATURE.test(reason.message);
}

/** Returns the `error` object. The streaming method wraps it in an array. */
function findError(json: unknown): Json {
  return object(object(Array.isArray(json) ? json[0] : json)["error"]);
}

function readError(json: unknown): Omit<UpstreamError, "status"> {
  const error = findError(json);
  const details = array(error["details"]).map(object);
  const message = readMessage(error["message"]);
  const coded = tellFromDetails(details) ?? SUBJECT_BY_WORD.get(string(error["status"]));
  return {
    message,
    ...tellSubject(coded, { message, words: WORDS }),
    retryAfterMs: readRetryDelayMs(findDetail(details, "RetryInfo")),
  };
}

/**
 * Classifies an error by its details. A rejected API key has the status INVALID_ARGUMENT, and a daily limit has a short
 * retry delay, so status and delay are not enough.
 */
function tellFromDetails(details: readonly Json[]): ErrorSubject | undefined {
  if (string(findDetail(details, "ErrorInfo")["reason"]).startsWith("API_KEY")) return "credential";
  const violations = array(findDetail(details, "QuotaFailure")["violations"]).map(object);
  return violations.some(({ quotaId }) => LASTING_LIMIT.test(string(quotaId))) ? "lasting" : undefined;
}

/** Returns the detail of a kind, such as `RetryInfo`; an empty object without it. */
function findDetail(details: readonly Json[], kind: string): Json {
  return details.find((each) => string(each["@type"]).endsWith(`google.rpc.${kind}`)) ?? {};
}

/** Returns `retryDelay` in whole milliseconds, rounded up. */
function readRetryDelayMs({ retryDelay }: Json): number | undefined {
  const seconds = DURATION.exec(string(retryDelay))?.[1];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000);
}

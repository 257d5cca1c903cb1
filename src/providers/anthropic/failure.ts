import type { Failure } from "../../core/failure.ts";
import { readMessage, type SubjectWords, tellSubject } from "../wire/error-words.ts";
import { type Json, object, parsed, string } from "../wire/json.ts";
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

/** Equivalent HTTP status by the type of an error inside a 2xx response. */
const STATUS_BY_TYPE: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["conflict_error", 409],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

/** Error subjects by `error.details.error_code` or `error.type`. */
const SUBJECT_BY_CODE: ReadonlyMap<string, ErrorSubject> = new Map([
  ["organization_on_hold", "account"],
  ["contract_spend_limit_reached", "lasting"],
  ["enforced_spend_limit_reached", "lasting"],
  ["overloaded_error", "overload"],
]);

/*
 * Errors without a code, recognised by the provider's text. If the text changes, such a refusal counts as the caller's
 * fault, like any other 400.
 */
const WORDS: SubjectWords = [
  ["account", /credit balance is too low|specified API usage limits/i],
  ["translation", /Extra inputs are not permitted/i],
  ["context", /prompt is too long|exceed context limit/i],
];

/** Maps a refusal to a Failure. Never throws, whatever the body is. */
export function toFailure(
  { status, headers, body }: Refusal,
  redact = keepAll,
  { verbatim }: { readonly verbatim: boolean } = { verbatim: false },
): Failure {
  return toStatusFailure({ ...readError(parsed(body)), ...readRetryAdvice(headers), status, verbatim }, redact);
}

/** Maps an error inside a 2xx response to a Failure. `begun` says whether content came before it. */
export function toInBandFailure(event: Json, where: InBand): Failure {
  const status = STATUS_BY_TYPE.get(string(object(event["error"])["type"])) ?? 500;
  return toInnerFailure({ ...readError(event), status }, where);
}

function readError(body: unknown): Omit<UpstreamError, "status"> {
  const error = object(object(body)["error"]);
  const code = string(object(error["details"])["error_code"]);
  const message = readMessage(error["message"]);
  const coded = SUBJECT_BY_CODE.get(code) ?? SUBJECT_BY_CODE.get(string(error["type"]));
  return { message, ...tellSubject(coded, { message, words: WORDS }) };
}

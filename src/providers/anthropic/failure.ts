import type { Failure } from "../../core/failure.ts";
import type { Refusal } from "../wire/response.ts";
import { readMessage, type SubjectWords, tellSubject } from "../wire/error-words.ts";
import { object, parsed, string, type Json } from "../wire/lenient.ts";
import { readRetryAdvice } from "../wire/retry-after.ts";
import { keepAll } from "../wire/redaction.ts";
import {
  type ErrorSubject,
  type InBand,
  toInnerFailure,
  toStatusFailure,
  type UpstreamError,
} from "../wire/status-failure.ts";

/** The statuses that the types of errors inside an answer stand for. */
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

/** By `error.details.error_code` or `error.type`. */
const SUBJECT_BY_CODE: ReadonlyMap<string, ErrorSubject> = new Map([
  ["organization_on_hold", "account"],
  ["contract_spend_limit_reached", "lasting"],
  ["enforced_spend_limit_reached", "lasting"],
  ["overloaded_error", "overload"],
]);

/*
 * What has no code of its own and must be told from its words. They are the provider's, and may change; then such a
 * refusal is taken for the caller's fault, as all other 400s are.
 */
const WORDS: SubjectWords = [
  ["account", /credit balance is too low|specified API usage limits/i],
  ["translation", /Extra inputs are not permitted/i],
  ["context", /prompt is too long|exceed context limit/i],
];

/** What a refusal means. Never throws, whatever its body is. */
export function toFailure({ status, headers, body }: Refusal, redact = keepAll): Failure {
  return toStatusFailure({ ...readError(parsed(body)), ...readRetryAdvice(headers), status }, redact);
}

/** What an error in an answer means whose status was 200: `begun` says whether content came before it. */
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

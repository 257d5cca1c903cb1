import type { Failure } from "../../core/failure.ts";
import { readMessage, type SubjectWords, tellSubject } from "../wire/error-words.ts";
import { array, isObject, object, parsed, string } from "../wire/json.ts";
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

/** The names by which servers of this dialect say what an error is about. */
const SUBJECTS: readonly (readonly [subject: ErrorSubject, names: readonly string[]])[] = [
  [
    "lasting",
    [
      "insufficient_quota",
      "quota_exceeded",
      "billing_hard_limit_reached",
      "billing_not_active",
      "insufficient_balance",
    ],
  ],
  [
    "credential",
    ["invalid_api_key", "authentication_error", "account_deactivated", "api_key_invalid", "unauthenticated"],
  ],
  ["context", ["context_length_exceeded", "exceed_context_size_error"]],
  ["content", ["content_policy_violation", "content_filter", "responsibleaipolicyviolation"]],
  ["translation", ["unknown_parameter", "unrecognized_parameter", "extra_forbidden"]],
  ["overload", ["overloaded_error", "engine_overloaded_error", "server_overloaded", "overloaded"]],
];

/** For servers that say in words only what others say in a field. */
const WORDS: SubjectWords = [
  ["credential", /(?:incorrect|invalid|missing) api key|api key (?:not valid|is invalid|expired)/i],
  ["account", /credit balance/i],
  [
    "context",
    /maximum context length|context (?:length|window|size)|(?:prompt|input) (?:is )?too long|too many input tokens|reduce the length of/i,
  ],
  [
    "translation",
    /extra (?:inputs|fields)(?: are)? not permitted|unrecognized request argument|unknown (?:name|parameter|field)\b|additional properties are not allowed|property .{1,80} is unsupported/i,
  ],
];

/** The statuses that an error inside a successful answer stands for, by what it is about. */
const STATUS_BY_SUBJECT: Readonly<Record<ErrorSubject, number>> = {
  lasting: 429,
  credential: 401,
  account: 402,
  context: 400,
  content: 400,
  translation: 400,
  overload: 529,
};

/** The same by its other names. */
const STATUS_BY_NAME: readonly (readonly [status: number, names: readonly string[]])[] = [
  [429, ["rate_limit_exceeded", "rate_limit_error", "rate_limit", "too_many_requests", "resource_exhausted"]],
  [403, ["permission_error", "permission_denied"]],
  [404, ["not_found_error", "model_not_found"]],
  [504, ["timeout", "timeout_error", "deadline_exceeded"]],
  [400, ["invalid_request_error", "invalid_request", "bad_request", "badrequesterror"]],
];

/** What a refusal means to us: by its status and its structured fields, then by its words. Never throws. */
export function toFailure({ status, headers, body }: Refusal, redact = keepAll): Failure {
  return toStatusFailure({ ...toError(readErrorBody(body)), ...readRetryAdvice(headers), status }, redact);
}

/** Maps an error inside a 2xx response to a Failure. `begun` says whether content came before it. */
export function toInBandFailure(error: unknown, where: InBand): Failure {
  const facts = readErrorFacts(error);
  const subject = findByName(facts, SUBJECTS);
  const named = subject === undefined ? undefined : STATUS_BY_SUBJECT[subject];
  const status = facts.status ?? named ?? findByName(facts, STATUS_BY_NAME) ?? 500;
  return toInnerFailure({ ...toError(facts), status }, where);
}

function toError(facts: ErrorFacts): Omit<UpstreamError, "status"> {
  const { message, param } = facts;
  return { message, param, ...tellSubject(findByName(facts, SUBJECTS), { message, words: WORDS }) };
}

/** The first entry that has one of the error's names. */
function findByName<T>({ names }: ErrorFacts, table: readonly (readonly [T, readonly string[]])[]): T | undefined {
  return table.find(([, known]) => known.some((name) => names.has(name)))?.[0];
}

/** What an upstream's error says of itself; each field is empty when it is missing. */
interface ErrorFacts {
  /** `type`, `code`, `status` and the like, in lower case. */
  readonly names: ReadonlySet<string>;
  /** An HTTP status that the error names itself, for want of a real one. */
  readonly status: number | undefined;
  /** As `readMessage` gives it. */
  readonly message: string;
  readonly param: string;
}

/** The error that an answer reports beside, or in place of, what was asked for; undefined when it reports none. */
export function findError(json: unknown): unknown {
  const answer: unknown = Array.isArray(json) && json.length === 1 ? json[0] : json;
  if (!isObject(answer)) return undefined;
  if (answer.error) return answer.error;
  return answer.object === "error" || answer.type === "error" ? answer : undefined;
}

/** The error in a refusal's body, whatever its form: `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`. */
function readErrorBody(body: string): ErrorFacts {
  const json = parsed(body);
  return readErrorFacts(findError(json) ?? json);
}

/** One error object, or text. */
function readErrorFacts(error: unknown): ErrorFacts {
  if (typeof error === "string") return { names: new Set(), status: undefined, message: readMessage(error), param: "" };
  const { type, code, status, message, msg, detail, param, details } = object(error);
  const nested = [...array(detail), ...array(details)].map(object);
  const words = [type, code, status, ...nested.flatMap((entry) => [entry.type, entry.reason])];
  const text = string(message) || string(msg) || string(detail) || nested.map((entry) => string(entry.msg)).join("; ");
  return {
    names: new Set(words.map((word) => string(word).toLowerCase()).filter((word) => word !== "")),
    status: readStatus(status) ?? readStatus(code),
    message: readMessage(text),
    param: /^[\w.[\]-]{1,100}$/.test(string(param)) ? string(param) : "",
  };
}

/** A number, or its digits, that can be an error's HTTP status. */
function readStatus(value: unknown): number | undefined {
  const status = typeof value === "number" || typeof value === "string" ? Number(value) : 0;
  return status >= 400 && status <= 599 ? Math.trunc(status) : undefined;
}

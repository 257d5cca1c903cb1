import type { Failure } from "../../core/failure.ts";
import { readMessage, type SubjectWords, tellSubject } from "./error-words.ts";
import { array, isObject, object, parsed, string } from "./json.ts";
import { keepAll } from "./redaction.ts";
import type { Refusal } from "./response.ts";
import type { Service } from "./service.ts";
import {
  type ErrorSubject,
  type InBand,
  readRetryAdvice,
  toInnerFailure,
  toStatusFailure,
  type UpstreamError,
} from "./status-failure.ts";

/*
 * Errors of OpenAI's services and of servers like them: chat completions, embeddings and the Responses API share them.
 */

/** OpenAI's refusal of a picture. The model that called the tool for it is another one, and has generated before. */
const PICTURE_REFUSED = "moderation_blocked";

/**
 * Messages of OpenAI for models that have generated in vain: reasoning that reached the limit of tokens before the answer began (status
 * 400), and an answer that OpenAI cannot read (status 500). It does not say whether it bills them.
 */
const IN_VAIN = /\bcould not finish the message because max_tokens\b|\bthe model produced invalid content\b/i;

/** Failures by error names (`type`, `code`). */
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
  // Mistral, Perplexity and Hugging Face send these with status 400.
  ["model", ["model_not_found", "model_not_supported", "model_not_available", "invalid_model"]],
  ["context", ["context_length_exceeded", "exceed_context_size_error"]],
  [
    "content",
    [
      "content_policy_violation",
      "content_filter",
      "responsibleaipolicyviolation",
      "invalid_prompt",
      "image_content_policy_violation",
      PICTURE_REFUSED,
      "image_generation_user_error",
      "bio_policy",
      "cyber_policy",
      "misalignment_policy_violation",
    ],
  ],
  ["translation", ["unknown_parameter", "unrecognized_parameter", "extra_forbidden"]],
  [
    "overload",
    [
      "overloaded_error",
      "engine_overloaded_error",
      "server_overloaded",
      "overloaded",
      "server_is_overloaded",
      "slow_down",
    ],
  ],
];

/** Failures by message text, for servers without error names. */
const WORDS: SubjectWords = [
  ["credential", /(?:incorrect|invalid|missing) api key|api key (?:not valid|is invalid|expired)/i],
  ["account", /credit balance/i],
  // xAI, with status 403.
  ["content", /\bcontent violates usage guidelines\b/i],
  // NVIDIA.
  ["overload", /\bdegraded function cannot be invoked\b/i],
  // DeepSeek and LM Studio.
  ["model", /\bmodel not exist\b|\bno models loaded\b/i],
  [
    "context",
    /maximum context length|context (?:length|window|size)|(?:prompt|input) (?:is )?too long|too many input tokens|tokens in the prompt cannot exceed|reduce the length of/i,
  ],
  [
    "translation",
    /extra (?:inputs|fields)(?: are)? not permitted|unrecognized request argument|unknown (?:name|parameter|field)\b|additional properties are not allowed|property .{1,80} is unsupported/i,
  ],
];

/** HTTP statuses equivalent to errors inside a 2xx response, by error name. */
const STATUS_BY_SUBJECT: Readonly<Record<ErrorSubject, number>> = {
  lasting: 429,
  credential: 401,
  account: 402,
  model: 404,
  context: 400,
  content: 400,
  translation: 400,
  overload: 529,
};

/** Further error names. */
const STATUS_BY_NAME: readonly (readonly [status: number, names: readonly string[]])[] = [
  [429, ["rate_limit_exceeded", "rate_limit_error", "rate_limit", "too_many_requests", "resource_exhausted"]],
  [403, ["permission_error", "permission_denied"]],
  [404, ["not_found_error"]],
  [504, ["timeout", "timeout_error", "deadline_exceeded", "vector_store_timeout"]],
  [400, ["invalid_request_error", "invalid_request", "bad_request", "badrequesterror", "invalid_encrypted_content"]],
  // Errors of a picture in the request, from `ResponseError` of the official SDK.
  [
    400,
    [
      "invalid_image",
      "invalid_image_format",
      "invalid_base64_image",
      "invalid_image_url",
      "invalid_image_mode",
      "image_too_large",
      "image_too_small",
      "image_parse_error",
      "image_file_too_large",
      "unsupported_image_media_type",
      "empty_image_file",
      "failed_to_download_image",
      "image_file_not_found",
    ],
  ],
];

/** Maps a refusal to a Failure: by status and structured fields, then by message text. Never throws. */
export function toFailure(
  { status, headers, body }: Refusal,
  { redact = keepAll, billsRefusals = false }: Pick<Service, "redact" | "billsRefusals"> = {},
  { verbatim = false }: Pick<UpstreamError, "verbatim"> = {},
): Failure {
  const facts = readErrorBody(body);
  const error = toError(facts);
  const { subject, toldBy } = error;
  // The only refusal for content without a code is that of xAI, which bills it.
  const ofPrompt = subject === "content" ? billsRefusals || toldBy === "words" : billsRefusals && subject === "context";
  const billed = ofPrompt || hasGenerated(facts);
  return toStatusFailure({ ...error, ...readRetryAdvice(headers), status, verbatim, billed }, redact);
}

/**
 * Whether a model has generated for a refused request. Groq answers with status 400 when a call or JSON of the model is invalid, or the
 * JSON is cut by the limit of tokens, and repeats it in the error.
 */
function hasGenerated({ names, message, generated }: ErrorFacts): boolean {
  return generated || names.has(PICTURE_REFUSED) || IN_VAIN.test(message);
}

/**
 * Maps an error inside a 2xx response to a Failure. A refusal for content may be billed on every host: Azure sends those of prompts
 * inside streams, others look at what the model has thought.
 */
export function toInBandFailure(error: unknown, where: InBand): Failure {
  const facts = readErrorFacts(error);
  const subject = findByName(facts, SUBJECTS);
  const told = toError(facts);
  const billed = told.subject === "content" || (where.usage?.inputTokens ?? 0) > 0 || hasGenerated(facts);
  const named = subject === undefined ? undefined : STATUS_BY_SUBJECT[subject];
  const status = facts.status ?? named ?? findByName(facts, STATUS_BY_NAME) ?? 500;
  return toInnerFailure({ ...told, status, billed }, where);
}

function toError(facts: ErrorFacts): Omit<UpstreamError, "status"> {
  const { message, param } = facts;
  return { message, param, ...tellSubject(findByName(facts, SUBJECTS), { message, words: WORDS }) };
}

/** The first entry that matches a name of the error. */
function findByName<T>({ names }: ErrorFacts, table: readonly (readonly [T, readonly string[]])[]): T | undefined {
  return table.find(([, known]) => known.some((name) => names.has(name)))?.[0];
}

/** Fields of an upstream error; empty when missing. */
interface ErrorFacts {
  /** `type`, `code`, `status` and the like, in lower case. */
  readonly names: ReadonlySet<string>;
  /** HTTP status stated in the error. */
  readonly status: number | undefined;
  /** From `readMessage`. */
  readonly message: string;
  readonly param: string;
  /** Whether it has what a model generated: `failed_generation`. */
  readonly generated: boolean;
}

/** The error object of a 2xx response; undefined without one. */
export function findError(json: unknown): unknown {
  const answer: unknown = Array.isArray(json) && json.length === 1 ? json[0] : json;
  if (!isObject(answer)) return undefined;
  if (answer.error) return answer.error;
  return answer.object === "error" || answer.type === "error" ? answer : undefined;
}

/** The error in the body of a refusal, in any of its forms: `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`. */
function readErrorBody(body: string): ErrorFacts {
  const json = parsed(body);
  return readErrorFacts(findError(json) ?? json);
}

/** Reads an error object or text. */
function readErrorFacts(error: unknown): ErrorFacts {
  if (typeof error === "string")
    return { names: new Set(), status: undefined, message: readMessage(error), param: "", generated: false };
  const { type, code, status, message, msg, detail, param, details, failed_generation: generated } = object(error);
  const nested = [...array(detail), ...array(details)].map(object);
  const words = [type, code, status, ...nested.flatMap((entry) => [entry.type, entry.reason])];
  const text = string(message) || string(msg) || string(detail) || nested.map((entry) => string(entry.msg)).join("; ");
  return {
    names: new Set(words.map((word) => string(word).toLowerCase()).filter((word) => word !== "")),
    status: readStatus(status) ?? readStatus(code),
    message: readMessage(text),
    param: /^[\w.[\]-]{1,100}$/.test(string(param)) ? string(param) : "",
    generated: typeof generated === "string",
  };
}

/** A number, or digits, that is an HTTP error status. */
function readStatus(value: unknown): number | undefined {
  const status = typeof value === "number" || typeof value === "string" ? Number(value) : 0;
  return status >= 400 && status <= 599 ? Math.trunc(status) : undefined;
}

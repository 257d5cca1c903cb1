import { Failure, type FailureOptions } from "../../core/failure.ts";
import type { Refusal } from "../answer.ts";
import { type ErrorFacts, findError, readErrorBody, readErrorFacts } from "./error-body.ts";
import { readRetryAfterMs } from "../retry-after.ts";
import { scrub } from "../scrub.ts";

export { findError };

/** How long an upstream is left alone whose refusal will not pass by itself. */
const LASTING_RETRY_MS = 30_000;

const FAILED = "The upstream provider failed.";
const FAILED_GENERATING = "The upstream provider failed while generating the response.";

const LASTING = [
  "insufficient_quota",
  "quota_exceeded",
  "billing_hard_limit_reached",
  "billing_not_active",
  "insufficient_balance",
];
const CREDENTIAL = [
  "invalid_api_key",
  "authentication_error",
  "account_deactivated",
  "api_key_invalid",
  "unauthenticated",
];
const CONTENT = ["content_policy_violation", "content_filter", "responsibleaipolicyviolation"];
const CONTEXT = ["context_length_exceeded", "exceed_context_size_error"];
const OURS = ["unknown_parameter", "unrecognized_parameter", "extra_forbidden"];
const OVERLOADED = ["overloaded_error", "engine_overloaded_error", "server_overloaded", "overloaded"];

/** For servers that say in words only what others say in a field. */
const CONTEXT_WORDS =
  /maximum context length|context (?:length|window|size)|(?:prompt|input) (?:is )?too long|too many input tokens|reduce the length of/i;
const CREDENTIAL_WORDS =
  /(?:incorrect|invalid|missing) api key|api key (?:not valid|is invalid|expired)|credit balance/i;
const OURS_WORDS =
  /extra (?:inputs|fields)(?: are)? not permitted|unrecognized request argument|unknown (?:name|parameter|field)\b|additional properties are not allowed|property .{1,80} is unsupported/i;

/** The status that an error inside a successful answer stands for, by its name. */
const STATUS_BY_NAME: readonly (readonly [names: readonly string[], status: number])[] = [
  [LASTING, 429],
  [["rate_limit_exceeded", "rate_limit_error", "rate_limit", "too_many_requests", "resource_exhausted"], 429],
  [OVERLOADED, 529],
  [CREDENTIAL, 401],
  [["permission_error", "permission_denied"], 403],
  [["not_found_error", "model_not_found"], 404],
  [["timeout", "timeout_error", "deadline_exceeded"], 504],
  [
    [...CONTEXT, ...CONTENT, ...OURS, "invalid_request_error", "invalid_request", "bad_request", "badrequesterror"],
    400,
  ],
];

/** What a refusal means to us: by its status and its structured fields, then by its words. Never throws. */
export function toOpenAiFailure({ status, headers, body }: Refusal): Failure {
  const retryAfterMs = readRetryAfterMs(headers);
  return classify(status, readErrorBody(body), {
    upstreamStatus: status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** An error inside an answer that began as a success: `whole` in place of a completion, else in a stream. */
export function toInnerFailure(error: unknown, where: "whole" | "stream"): Failure {
  const facts = readErrorFacts(error);
  const named = STATUS_BY_NAME.find(([names]) => has(facts, names))?.[1];
  const failure = classify(facts.status ?? named ?? 500, facts, { upstreamStatus: 200 });
  if (where === "whole" || failure.code === "upstream_rejected") return failure;
  const { code, detail, retryAfterMs, transient, upstreamStatus } = failure;
  return new Failure(code, FAILED_GENERATING, {
    transient,
    ...(detail !== undefined && { detail }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(upstreamStatus !== undefined && { upstreamStatus }),
  });
}

/** An answer that the upstream itself calls broken off, without saying why. */
export function brokenOff(): Failure {
  return new Failure("upstream_unavailable", FAILED_GENERATING, { upstreamStatus: 200 });
}

function classify(status: number, facts: ErrorFacts, options: FailureOptions): Failure {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return toRejection(status, facts, options);
    case 401:
      return notAuthenticated(options);
    case 402:
      return new Failure(
        "upstream_refused_us",
        "The upstream provider does not serve this gateway's account.",
        options,
      );
    case 403:
      if (has(facts, CONTENT)) return rejected(facts, options);
      return new Failure(
        "upstream_refused_us",
        "The upstream provider does not let this gateway's account do this.",
        options,
      );
    case 404:
      return new Failure("upstream_refused_us", "The upstream provider does not know the model.", options);
    case 408:
    case 409:
    case 499:
      return new Failure("upstream_unavailable", FAILED, options);
    case 429:
      return toRateLimit(facts, options);
    case 504:
      return new Failure("upstream_timeout", "The upstream provider took too long to answer.", {
        ...options,
        transient: true,
      });
  }
  if (status < 500) {
    return new Failure("upstream_protocol", "The upstream provider answered with an unexpected status.", options);
  }
  if (status === 529 || has(facts, OVERLOADED)) {
    const message = "The upstream provider is temporarily overloaded.";
    return new Failure("upstream_unavailable", message, { ...options, detail: "upstream_overloaded" });
  }
  return new Failure("upstream_unavailable", FAILED, options);
}

function toRejection(status: number, facts: ErrorFacts, options: FailureOptions): Failure {
  if (has(facts, LASTING) || has(facts, CREDENTIAL) || CREDENTIAL_WORDS.test(facts.message))
    return notAuthenticated(options);
  if (has(facts, CONTEXT) || CONTEXT_WORDS.test(facts.message)) {
    const message = scrub(facts.message) || "The conversation is longer than the model's context window.";
    const violations = [{ field: "messages", description: message }];
    return new Failure("upstream_rejected", message, { ...options, detail: "context_length_exceeded", violations });
  }
  if (has(facts, OURS) || OURS_WORDS.test(facts.message)) {
    const message = "The upstream provider did not understand the gateway's request.";
    return new Failure("upstream_protocol", message, { ...options, transient: false });
  }
  const tooLarge = status === 413 ? "The request is larger than the upstream provider takes." : undefined;
  return rejected(facts, options, tooLarge);
}

function rejected(
  facts: ErrorFacts,
  options: FailureOptions,
  otherwise = "The upstream provider rejected the request.",
): Failure {
  const message = scrub(facts.message) || otherwise;
  const violations = facts.param === "" ? [] : [{ field: facts.param, description: message }];
  return new Failure("upstream_rejected", message, { ...options, violations });
}

function toRateLimit(facts: ErrorFacts, options: FailureOptions): Failure {
  if (has(facts, LASTING)) {
    const lasting = { ...options, retryAfterMs: LASTING_RETRY_MS, transient: false };
    return new Failure("upstream_unavailable", "The upstream provider is not available.", lasting);
  }
  const { retryAfterMs } = options;
  const wait = retryAfterMs === undefined ? "" : ` Retry after ${Math.ceil(retryAfterMs / 1000)} seconds.`;
  return new Failure("upstream_rate_limited", `The upstream provider is rate limiting requests.${wait}`, options);
}

function notAuthenticated(options: FailureOptions): Failure {
  return new Failure("upstream_refused_us", "The gateway could not authenticate with the upstream provider.", options);
}

function has({ names }: ErrorFacts, some: readonly string[]): boolean {
  return some.some((name) => names.has(name));
}

import { Failure, type FailureCode, type FailureOptions } from "../../core/failure.ts";
import type { Refusal } from "../answer.ts";
import { object, parsed, string, type Json } from "../lenient.ts";
import { readRetryAfterMs } from "../retry-after.ts";
import { scrub } from "../scrub.ts";

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

/** 429s that waiting a little does not end. */
const LASTING_LIMITS: ReadonlySet<string> = new Set(["contract_spend_limit_reached", "enforced_spend_limit_reached"]);

/** How long a provider that refuses us for long is left alone. */
const LASTING_RETRY_AFTER_MS = 30_000;

/*
 * What has no code of its own and must be told from its words. They are the provider's, and may change; then such a
 * refusal is taken for the caller's fault, as all other 400s are.
 */
const CONTEXT_TOO_LONG = /prompt is too long|exceed context limit/i;
const ACCOUNT_REFUSED = /credit balance is too low|specified API usage limits/i;
const BODY_REFUSED = /Extra inputs are not permitted/i;

/** The facts that a failure is told from. */
interface Facts {
  /** The status, or the one that the type of an error in an answer stands for. */
  readonly status: number;
  readonly type: string;
  /** `error.details.error_code`. */
  readonly errorCode: string;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
  /** Whether the provider says that the same call will fail again. */
  readonly final: boolean;
}

/** What a refusal means. Never throws, whatever its body is. */
export function toRefusalFailure({ status, headers, body }: Refusal): Failure {
  const facts: Facts = {
    ...readError(parsed(body)),
    status,
    retryAfterMs: readRetryAfterMs(headers),
    final: headers["x-should-retry"] === "false",
  };
  return toFailure(facts, status);
}

/**
 * What an error in an answer means whose status was 200: `begun` says whether content came before it. Then the failure
 * cannot be mended by another attempt, and only says that generating failed.
 */
export function toErrorFailure(event: Json, { begun }: { readonly begun: boolean }): Failure {
  const error = readError(event);
  const status = STATUS_BY_TYPE.get(error.type) ?? 500;
  const failure = toFailure({ ...error, status, retryAfterMs: undefined, final: false }, 200);
  if (!begun) return failure;
  const { code, detail, transient } = failure;
  return new Failure(code, "The upstream provider failed while generating the response.", {
    transient,
    upstreamStatus: 200,
    ...(detail !== undefined && { detail }),
  });
}

function readError(body: unknown): Pick<Facts, "type" | "errorCode" | "message"> {
  const error = object(object(body)["error"]);
  const errorCode = string(object(error["details"])["error_code"]);
  return { type: string(error["type"]), errorCode, message: string(error["message"]) };
}

function toFailure(facts: Facts, upstreamStatus: number): Failure {
  const { code, message, ...options } = classify(facts);
  return new Failure(code, message, { upstreamStatus, ...options });
}

interface Classified extends FailureOptions {
  readonly code: FailureCode;
  readonly message: string;
}

function classify(facts: Facts): Classified {
  const { status, type } = facts;
  if (status === 529 || (status >= 500 && type === "overloaded_error")) return toOverload(facts);
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return toRejection(facts);
    case 401:
    case 403:
      return refusedUs("The upstream provider refused this gateway's own credentials.");
    case 402:
      return refusedUs("The upstream provider refuses to serve this gateway's account.");
    case 404:
      return refusedUs("The upstream provider does not know the model that this gateway asked it for.");
    case 429:
      return toRateLimit(facts);
    case 504:
      return { code: "upstream_timeout", message: "The upstream provider took too long to answer.", transient: true };
  }
  if (isUnavailable(status)) {
    return { ...unavailable("The upstream provider is temporarily unavailable."), ...toPatience(facts) };
  }
  const message = "The upstream provider answered in a way that this gateway does not understand.";
  return { code: "upstream_protocol", message, transient: false };
}

function isUnavailable(status: number): boolean {
  return [408, 409, 499, 500, 501, 502, 503].includes(status) || (status >= 520 && status < 530);
}

function toRejection({ errorCode, message, status }: Facts): Classified {
  if (errorCode === "organization_on_hold" || ACCOUNT_REFUSED.test(message)) {
    return refusedUs("The upstream provider refuses to serve this gateway's account.");
  }
  if (BODY_REFUSED.test(message)) {
    const told = "The upstream provider does not understand what this gateway made of the request.";
    return { code: "upstream_protocol", message: told, transient: false };
  }
  const rejected = { code: "upstream_rejected", transient: false } as const;
  if (CONTEXT_TOO_LONG.test(message)) {
    const violations = [{ field: "messages", description: "too long for the model's context window" }];
    return { ...rejected, message: scrub(message), detail: "context_length_exceeded", violations };
  }
  const plain =
    status === 413
      ? "The request is too large for the upstream provider."
      : "The upstream provider rejected the request.";
  return { ...rejected, message: scrub(message) || plain };
}

function toRateLimit({ errorCode, retryAfterMs }: Facts): Classified {
  if (LASTING_LIMITS.has(errorCode)) {
    return {
      ...unavailable("The upstream provider is not accepting requests from this gateway for now."),
      retryAfterMs: LASTING_RETRY_AFTER_MS,
      transient: false,
    };
  }
  const message = "The upstream provider is rate limiting requests.";
  if (retryAfterMs === undefined) return { code: "upstream_rate_limited", message };
  const seconds = Math.max(Math.ceil(retryAfterMs / 1000), 1);
  const advice = `Retry after ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
  return { code: "upstream_rate_limited", message: `${message} ${advice}`, retryAfterMs };
}

function toOverload(facts: Facts): Classified {
  const overload = unavailable("The upstream provider is temporarily overloaded.");
  return { ...overload, detail: "upstream_overloaded", ...toPatience(facts) };
}

/** When another try makes sense, as far as the provider says. */
function toPatience({ retryAfterMs, final }: Facts): FailureOptions {
  return { ...(retryAfterMs !== undefined && { retryAfterMs }), ...(final && { transient: false }) };
}

function unavailable(message: string): Classified {
  return { code: "upstream_unavailable", message };
}

function refusedUs(message: string): Classified {
  return { code: "upstream_refused_us", message, transient: false };
}

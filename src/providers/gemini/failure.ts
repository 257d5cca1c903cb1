import { Failure, type FailureOptions } from "../../core/failure.ts";
import type { Refusal } from "../answer.ts";
import { array, type Json, object, parsed, string } from "../lenient.ts";
import { toRejectionMessage } from "./rejection.ts";
import { readRetryDelay } from "./retry-delay.ts";

/** HTTP status by the provider's word, for errors that come without a number. */
const STATUS_BY_WORD: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ABORTED: 409,
  ALREADY_EXISTS: 409,
  RESOURCE_EXHAUSTED: 429,
  CANCELLED: 499,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

/** How long a limit that does not pass within minutes keeps the model out of use. */
const LASTING_LIMIT_MS = 30_000;

/** Limits by the day or longer, in the ID of a quota. */
const LASTING_LIMIT = /Per(?:Day|Week|Month)/i;

/** Only the text tells these kinds of INVALID_ARGUMENT apart from all others. */
const TOO_LONG = /input token count\b.*\bexceeds/is;
const REFUSED_SIGNATURE = /corrupted thought signature/i;
const UNKNOWN_FIELD = /Unknown name|Cannot find field/i;

/** What an error says, wherever it came from. */
interface UpstreamError {
  readonly status: number;
  /** Such as `RESOURCE_EXHAUSTED`; empty when it was not said. */
  readonly word: string;
  readonly message: string;
  readonly details: readonly Json[];
  readonly headers: Refusal["headers"];
}

/** The failure that an answer other than a 2xx means. Never throws, whatever the body is. */
export function toFailure({ status, headers, body }: Refusal): Failure {
  return nameFailure({ ...readError(parsed(body)), status, headers });
}

/** The failure that an error inside a 2xx answer means: by its own code, as if it had come with that status. */
export function toInBandFailure(json: unknown): Failure {
  const { code, ...error } = readError(json);
  const status = code >= 400 && code <= 599 ? code : (STATUS_BY_WORD[error.word] ?? 500);
  return nameFailure({ ...error, status, headers: {} });
}

/** Whether the request was refused for a thought signature that this account or route has not made. */
export function isRefusedSignature(reason: unknown): boolean {
  return reason instanceof Failure && reason.code === "upstream_rejected" && REFUSED_SIGNATURE.test(reason.message);
}

/** The same failure, said of an answer that had begun. */
export function failedMidway(failure: Failure): Failure {
  const { code, detail, retryAfterMs, transient, upstreamStatus } = failure;
  if (code !== "upstream_unavailable" && code !== "upstream_timeout") return failure;
  return new Failure(code, "The upstream provider failed while generating the response.", {
    transient,
    cause: failure,
    ...(detail !== undefined && { detail }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(upstreamStatus !== undefined && { upstreamStatus }),
  });
}

/** The error object, also out of the array that the streaming method wraps around it. */
function readError(json: unknown): Omit<UpstreamError, "status" | "headers"> & { readonly code: number } {
  const { code, status, message, details } = object(object(Array.isArray(json) ? json[0] : json)["error"]);
  return {
    code: typeof code === "number" ? code : 0,
    word: string(status),
    message: string(message),
    details: array(details).map(object),
  };
}

function nameFailure(error: UpstreamError): Failure {
  const { status, word, headers } = error;
  const retryAfterMs = readRetryDelay(findDetail(error, "RetryInfo"), headers);
  const options: FailureOptions = {
    upstreamStatus: status,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
  switch (status) {
    case 400:
      return nameInvalid(error, options);
    case 401:
    case 403:
      return unauthenticated(options);
    case 402:
      return new Failure(
        "upstream_refused_us",
        "The upstream provider does not serve this gateway's account.",
        options,
      );
    case 404:
      return new Failure("upstream_refused_us", "The upstream provider does not know the model.", options);
    case 413:
    case 415:
    case 422:
      return rejected(error, options);
    case 429:
      return nameLimit(error, options);
    case 504:
      return new Failure("upstream_timeout", "The upstream provider took too long.", { ...options, transient: true });
    case 529:
      return overloaded(options);
    case 503:
      return word === "UNAVAILABLE" ? overloaded(options) : unavailable(options);
    case 408:
    case 409:
    case 499:
      return unavailable(options);
    default:
      if (status >= 500 && status <= 599)
        return new Failure("upstream_unavailable", "The upstream provider failed.", options);
      return new Failure("upstream_protocol", "The upstream provider's answer could not be read.", options);
  }
}

/** A 400 is about the request, unless it is about our credential, our account, or what we made of the request. */
function nameInvalid(error: UpstreamError, options: FailureOptions): Failure {
  const { word, message } = error;
  if (string(findDetail(error, "ErrorInfo")["reason"]).startsWith("API_KEY")) return unauthenticated(options);
  if (word === "FAILED_PRECONDITION") {
    return new Failure("upstream_refused_us", "The upstream provider does not serve this gateway's account.", options);
  }
  if (UNKNOWN_FIELD.test(message)) {
    return new Failure("upstream_protocol", "The upstream provider did not understand the gateway.", {
      ...options,
      transient: false,
    });
  }
  return rejected(error, options);
}

function rejected({ message }: UpstreamError, options: FailureOptions): Failure {
  const shown = toRejectionMessage(message);
  if (!TOO_LONG.test(message)) return new Failure("upstream_rejected", shown, { ...options, transient: false });
  const violations = [{ field: "messages", description: shown }];
  return new Failure("upstream_rejected", shown, {
    ...options,
    transient: false,
    detail: "context_length_exceeded",
    violations,
  });
}

/** A limit by the minute passes; one by the day does not, whatever delay the provider suggests with it. */
function nameLimit(error: UpstreamError, options: FailureOptions): Failure {
  const violations = array(findDetail(error, "QuotaFailure")["violations"]);
  if (violations.some((violation) => LASTING_LIMIT.test(string(object(violation)["quotaId"])))) {
    return unavailable({ ...options, retryAfterMs: LASTING_LIMIT_MS, transient: false });
  }
  const { retryAfterMs } = options;
  const advice = retryAfterMs === undefined ? "" : ` Retry after ${Math.ceil(retryAfterMs / 1000)} seconds.`;
  return new Failure("upstream_rate_limited", `The upstream provider is rate limiting requests.${advice}`, options);
}

function unauthenticated(options: FailureOptions): Failure {
  return new Failure("upstream_refused_us", "The gateway could not authenticate with the upstream provider.", options);
}

function overloaded(options: FailureOptions): Failure {
  const message = "The upstream provider is temporarily overloaded.";
  return new Failure("upstream_unavailable", message, { ...options, detail: "upstream_overloaded" });
}

function unavailable(options: FailureOptions): Failure {
  return new Failure("upstream_unavailable", "The upstream provider is not available.", options);
}

/** The detail of a kind, such as `RetryInfo`; an empty object without it. */
function findDetail({ details }: UpstreamError, kind: string): Json {
  return details.find((each) => string(each["@type"]).endsWith(`google.rpc.${kind}`)) ?? {};
}

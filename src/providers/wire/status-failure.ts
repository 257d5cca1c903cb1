import { Failure, type FailureCode, type FailureOptions } from "../../core/failure.ts";
import { keepAll, type Redact } from "./redaction.ts";
import { scrub } from "./scrub.ts";

/**
 * What an error is about, where its status does not say: the conversation's length (`context`), our credential, our
 * account, content that is not allowed, what our translation made of the request (`translation`), a limit that waiting
 * a little does not end (`lasting`), or an upstream with too much to do (`overload`).
 */
export type ErrorSubject = "context" | "credential" | "account" | "content" | "translation" | "lasting" | "overload";

/** The facts that a failure is told from: what a dialect reads out of an error, in no dialect's words. */
export interface UpstreamError {
  /** The HTTP status, or the one that an error inside an answer stands for. */
  readonly status: number;
  /** The upstream's own text, as `readMessage` gives it. */
  readonly message: string;
  readonly subject?: ErrorSubject | undefined;
  /** What told the subject: a structured field, or only the text, which may repeat the caller's. Default: `code`. */
  readonly toldBy?: "code" | "words";
  /** The request field that the upstream names; empty when it names none. */
  readonly param?: string;
  readonly retryAfterMs?: number | undefined;
  /** Whether the upstream says that the same call will fail again. */
  readonly final?: boolean;
}

/** Where in an answer an error stands that began as a success, and what must not be shown of it. */
export interface InBand {
  /** Whether content came before it. */
  readonly begun: boolean;
  /** Of the provider's credentials. Default: nothing. */
  readonly redact?: Redact;
}

/** How long an upstream is left alone whose limit does not pass by itself. */
const LASTING_RETRY_MS = 30_000;

const FAILED = "The upstream provider failed.";
const FAILED_GENERATING = "The upstream provider failed while generating the response.";
const NOT_AUTHENTICATED = "The gateway could not authenticate with the upstream provider.";
const NOT_SERVED = "The upstream provider does not serve this gateway's account.";
const NOT_ALLOWED = "The upstream provider does not let this gateway's account do this.";

/** The failure that an answer with an error's status means: the one classification that all dialects share. */
export function toStatusFailure(error: UpstreamError, redact: Redact = keepAll): Failure {
  return toFailure(error, { upstreamStatus: error.status, refused: true }, redact);
}

/**
 * The failure that an error inside an answer means whose status was 200. Before any content it is named as its status
 * would be. Once content has `begun`, its text only says that generating failed.
 */
export function toInnerFailure(error: UpstreamError, { begun, redact = keepAll }: InBand): Failure {
  if (!begun) return toFailure(error, { upstreamStatus: 200, refused: true }, redact);
  const failure = toFailure(error, { upstreamStatus: 200 }, redact);
  const { code, detail, violations, retryAfterMs, transient, requestBound, upstreamStatus } = failure;
  return new Failure(code, FAILED_GENERATING, {
    transient,
    requestBound,
    refused: false,
    ...(detail !== undefined && { detail }),
    // Ours; those of other rejections hold the upstream's words.
    ...(detail === "context_length_exceeded" && { violations }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(upstreamStatus !== undefined && { upstreamStatus }),
  });
}

function toFailure(
  error: UpstreamError,
  where: Pick<FailureOptions, "upstreamStatus" | "refused">,
  redact: Redact,
): Failure {
  const { code, message, ...options } = classify(error, redact);
  return new Failure(code, message, { ...options, ...where });
}

interface Classified extends FailureOptions {
  readonly code: FailureCode;
  readonly message: string;
}

function classify(error: UpstreamError, redact: Redact): Classified {
  const { status, subject } = error;
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return toRejection(error, redact);
    case 401:
      return refusedUs(NOT_AUTHENTICATED);
    case 402:
      return refusedUs(NOT_SERVED);
    case 403:
      return subject === "content" ? rejected(error, redact) : refusedUs(NOT_ALLOWED);
    case 404:
      return refusedUs("The upstream provider does not know the model.");
    case 408:
    case 409:
    case 499:
      return unavailable(error, FAILED);
    case 429:
      return toRateLimit(error);
    case 504: {
      const message = "The upstream provider took too long to answer.";
      return { code: "upstream_timeout", message, transient: true, ...toPatience(error) };
    }
  }
  if (status < 500 || status > 599) {
    const message = "The upstream provider answered with an unexpected status.";
    return { code: "upstream_protocol", message, transient: false };
  }
  if (status !== 529 && subject !== "overload") return unavailable(error, FAILED);
  const overload = unavailable(error, "The upstream provider is temporarily overloaded.");
  return { ...overload, detail: "upstream_overloaded" };
}

/** A rejection is about the request, unless it is about our credential, our account, or what we made of the request. */
function toRejection(error: UpstreamError, redact: Redact): Classified {
  // Told by words only, it may be the caller's text that speaks: that says nothing about the upstream.
  const requestBound = error.toldBy === "words";
  switch (error.subject) {
    case "credential":
      return { ...refusedUs(NOT_AUTHENTICATED), requestBound };
    case "account":
    case "lasting":
      return { ...refusedUs(NOT_SERVED), requestBound };
    case "translation": {
      const message = "The upstream provider did not understand the gateway's request.";
      return { code: "upstream_protocol", message, transient: false, requestBound };
    }
    case "context": {
      const violations = [{ field: "messages", description: "too long for the model's context window" }];
      const message = scrub(error.message, redact) || "The conversation is longer than the model's context window.";
      return { code: "upstream_rejected", message, detail: "context_length_exceeded", violations };
    }
    case "content":
    case "overload":
    case undefined:
      return rejected(error, redact);
  }
}

/** In the upstream's own words, as a caller may see them, or in ours when nothing is left of them. */
function rejected({ status, message: words, param = "" }: UpstreamError, redact: Redact): Classified {
  const plain =
    status === 413
      ? "The request is too large for the upstream provider."
      : "The upstream provider rejected the request.";
  const message = scrub(words, redact) || plain;
  const violations = param === "" || redact(param) !== param ? [] : [{ field: param, description: message }];
  return { code: "upstream_rejected", message, violations };
}

function toRateLimit(error: UpstreamError): Classified {
  if (error.subject === "lasting") {
    const message = "The upstream provider is not available.";
    return { code: "upstream_unavailable", message, transient: false, retryAfterMs: LASTING_RETRY_MS };
  }
  const limit = "The upstream provider is rate limiting requests.";
  return { code: "upstream_rate_limited", message: `${limit}${toAdvice(error)}`, ...toPatience(error) };
}

function toAdvice({ retryAfterMs }: UpstreamError): string {
  if (retryAfterMs === undefined) return "";
  const seconds = Math.max(Math.ceil(retryAfterMs / 1000), 1);
  return ` Retry after ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
}

/** When another try makes sense, as far as the upstream says. */
function toPatience({ retryAfterMs, final = false }: UpstreamError): FailureOptions {
  return { ...(retryAfterMs !== undefined && { retryAfterMs }), ...(final && { transient: false }) };
}

function unavailable(error: UpstreamError, message: string): Classified {
  return { code: "upstream_unavailable", message, ...toPatience(error) };
}

function refusedUs(message: string): Classified {
  return { code: "upstream_refused_us", message };
}

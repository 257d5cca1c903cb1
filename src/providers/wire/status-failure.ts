import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure, type FailureCode, type FailureOptions } from "../../core/failure.ts";
import { keepAll, type Redact } from "./redaction.ts";
import type { Refusal } from "./response.ts";
import { scrub, scrubForOperators } from "./scrub.ts";

/**
 * Subject of an error whose status alone is ambiguous: the conversation's length (`context`), our credential, our
 * account, a model that is not served (`model`), disallowed content, an error of our translation (`translation`), a limit that a short wait does not lift
 * (`lasting`), or an overloaded upstream (`overload`).
 */
export type ErrorSubject =
  | "context"
  | "credential"
  | "account"
  | "model"
  | "content"
  | "translation"
  | "lasting"
  | "overload";

/** An upstream error as a dialect reads it, in terms that all dialects share. */
export interface UpstreamError {
  /** The HTTP status, or the equivalent status of an error inside a 2xx response. */
  readonly status: number;
  /** The upstream's own text, from `readMessage`. */
  readonly message: string;
  readonly subject?: ErrorSubject | undefined;
  /** Source of the subject: a structured field, or the text, which may repeat the caller's input. Default: `code`. */
  readonly toldBy?: "code" | "words";
  /** The request field that the upstream names; empty when it names none. */
  readonly param?: string;
  readonly retryAfterMs?: number | undefined;
  /** Whether the upstream says that a retry will fail. */
  readonly final?: boolean;
  /** Whether the request contained the caller's own JSON; then a `translation` error is attributed to that. Default: no. */
  readonly verbatim?: boolean;
  /** Whether the upstream bills requests that it refuses for this reason. Default: no. */
  readonly billed?: boolean;
}

/** Position of an error inside a 2xx response, and its redaction. */
export interface InBand {
  /** Whether content came before it. */
  readonly begun: boolean;
  /** The upstream's count of tokens for what failed. Default: none. */
  readonly usage?: Usage | undefined;
  /** Redacts the provider's credentials. Default: none. */
  readonly redact?: Redact;
}

/** Statuses of servers and proxies that stopped waiting for an answer, which may have been generated. The last one is Cloudflare's. */
const TIMEOUTS: ReadonlySet<number> = new Set([408, 504, 524]);

/** Anthropic's refusal, on every host, of an answer that it has generated in part. It does not say whether it bills that. */
const OUTPUT_BLOCKED = /\boutput blocked by content filtering policy\b/i;

/** Retry delay in ms after a limit that a short wait does not lift. */
const LASTING_RETRY_MS = 30_000;

/** Longest wait of a provider in ms, whose limits are by the minute, the hour or the day. A later date is a mistake. */
const MAX_RETRY_MS = 24 * 60 * 60_000;

const FAILED = "The upstream provider failed.";
const FAILED_GENERATING = "The upstream provider failed while generating the response.";
const NOT_AUTHENTICATED = "The gateway could not authenticate with the upstream provider.";
const NOT_SERVED = "The upstream provider does not serve this gateway's account.";
const NOT_KNOWN = "The upstream provider does not know the model.";
const NOT_ALLOWED = "The upstream provider does not let this gateway's account do this.";

/** Maps a response with an error status to a Failure. All dialects share this classification. */
export function toStatusFailure(error: UpstreamError, redact: Redact = keepAll): Failure {
  return toFailure(error, { upstreamStatus: error.status, refused: isUnbilled(error) }, redact);
}

/**
 * Maps an error inside a 2xx response to a Failure. Before any content it is classified by its equivalent status. Once
 * content has `begun`, the message only says that generating failed.
 */
export function toInnerFailure(error: UpstreamError, { begun, usage, redact = keepAll }: InBand): Failure {
  if (!begun) return toFailure(error, { upstreamStatus: 200, refused: isUnbilled(error), inBand: true, usage }, redact);
  const failure = toFailure(error, { upstreamStatus: 200 }, redact);
  const { code, detail, violations, retryAfterMs, transient, requestBound, upstreamStatus } = failure;
  // A rejection has the upstream's words as its message.
  const providerError = failure.providerError ?? (code === "upstream_rejected" ? failure.message : undefined);
  return new Failure(code, FAILED_GENERATING, {
    transient,
    requestBound,
    refused: false,
    inBand: true,
    usage,
    ...(detail !== undefined && { detail }),
    // These violations are our own text; those of other rejections hold the upstream's.
    ...(detail === "context_length_exceeded" && { violations }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(upstreamStatus !== undefined && { upstreamStatus }),
    ...(providerError !== undefined && { providerError }),
  });
}

/** Whether the upstream refused the request at no cost. */
function isUnbilled({ status, message, billed = false }: UpstreamError): boolean {
  return !billed && !TIMEOUTS.has(status) && !OUTPUT_BLOCKED.test(message);
}

function toFailure(
  error: UpstreamError,
  where: Pick<FailureOptions, "upstreamStatus" | "refused" | "inBand" | "usage">,
  redact: Redact,
): Failure {
  const { code, message, ...options } = classify(error, redact);
  const providerError = scrubForOperators(error.message, redact);
  const isSaid = providerError === "" || providerError === message;
  return new Failure(code, message, { ...options, ...where, ...(!isSaid && { providerError }) });
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
      return refusedUs(NOT_KNOWN);
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
  return status === 529 || subject === "overload" ? overloaded(error) : unavailable(error, FAILED);
}

/** A rejection is the request's fault unless its subject is our credential, account, model or translation, or the upstream's load. */
function toRejection(error: UpstreamError, redact: Redact): Classified {
  // A subject from text only may come from quoted caller input, which says nothing about the upstream's health.
  const requestBound = error.toldBy === "words";
  switch (error.subject) {
    case "credential":
      return { ...refusedUs(NOT_AUTHENTICATED), requestBound };
    case "account":
    case "lasting":
      return { ...refusedUs(NOT_SERVED), requestBound };
    case "model":
      return { ...refusedUs(NOT_KNOWN), requestBound };
    case "translation": {
      if (error.verbatim) return rejected(error, redact);
      const message = "The upstream provider did not understand the gateway's request.";
      return { code: "upstream_protocol", message, transient: false, requestBound };
    }
    case "context": {
      const violations = [{ field: "messages", description: "too long for the model's context window" }];
      const message = scrub(error.message, redact) || "The conversation is longer than the model's context window.";
      return { code: "upstream_rejected", message, detail: "context_length_exceeded", violations };
    }
    case "overload":
      return { ...overloaded(error), requestBound };
    case "content":
    case undefined:
      return rejected(error, redact);
  }
}

/** Uses the upstream's scrubbed text, or our own if nothing is left of it. */
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

function toAdvice(error: UpstreamError): string {
  const waitMs = waitOf(error);
  if (waitMs === undefined) return "";
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return ` Retry after ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
}

/** The upstream's retry advice as options of a Failure. */
function toPatience(error: UpstreamError): FailureOptions {
  const waitMs = waitOf(error);
  return { ...(waitMs !== undefined && { retryAfterMs: waitMs }), ...(error.final === true && { transient: false }) };
}

function waitOf({ retryAfterMs }: UpstreamError): number | undefined {
  return retryAfterMs && Math.min(retryAfterMs, MAX_RETRY_MS);
}

function unavailable(error: UpstreamError, message: string): Classified {
  return { code: "upstream_unavailable", message, ...toPatience(error) };
}

function overloaded(error: UpstreamError): Classified {
  return { ...unavailable(error, "The upstream provider is temporarily overloaded."), detail: "upstream_overloaded" };
}

function refusedUs(message: string): Classified {
  return { code: "upstream_refused_us", message };
}

type Headers = Refusal["headers"];

/** Retry advice from a refusal's headers. */
interface RetryAdvice {
  /** Requested delay in ms; undefined if absent or unreadable. */
  readonly retryAfterMs: number | undefined;
  /** Whether the upstream says that a retry will fail. */
  readonly final: boolean;
}

/** Reads `retry-after-ms`, `retry-after` and `x-should-retry`. */
export function readRetryAdvice(headers: Headers): RetryAdvice {
  return { retryAfterMs: readRetryAfterMs(headers), final: first(headers["x-should-retry"]).trim() === "false" };
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date relative to the response's own `date`. */
export function readRetryAfterMs(headers: Headers): number | undefined {
  const exact = readNumber(headers["retry-after-ms"]);
  if (exact !== undefined) return Math.ceil(exact);
  const seconds = readNumber(headers["retry-after"]);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const wait = Date.parse(first(headers["retry-after"])) - Date.parse(first(headers["date"]));
  return Number.isNaN(wait) ? undefined : Math.max(wait, 0);
}

function readNumber(header: string | string[] | undefined): number | undefined {
  const text = first(header).trim();
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** The first value of a repeated header. */
function first(header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header[0] : header) ?? "";
}

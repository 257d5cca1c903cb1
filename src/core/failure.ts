import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import type { LimitFacts } from "./limiter.ts";

/** Why a completion did not work, in our own words. `inbound/failure-table.ts` says what each becomes on the wire. */
export type FailureCode =
  | "invalid_request"
  | "request_too_large"
  | "unauthenticated"
  | "permission_denied"
  | "model_not_found"
  | "not_found"
  | "rate_limited"
  | "budget_spent"
  | "overloaded"
  | "upstream_rejected"
  | "upstream_rate_limited"
  | "upstream_unavailable"
  | "upstream_timeout"
  | "upstream_protocol"
  | "upstream_refused_us"
  | "deadline_exceeded"
  | "cancelled"
  | "internal";

/** What makes a failure more precise than its code where clients act on the difference. */
export type FailureDetail = "context_length_exceeded" | "upstream_overloaded" | "reauthentication_required";

/** One field of a request that is wrong: its path, such as `messages[2].content`, and what would be right. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface FailureOptions {
  readonly detail?: FailureDetail;
  /** The offending fields of an `invalid_request`; the first one is shown as `error.param`. */
  readonly violations?: readonly FieldViolation[];
  /** How long to wait before trying again. */
  readonly retryAfterMs?: number;
  /** Whether trying the same upstream model again soon may help. Default: by the code. */
  readonly transient?: boolean;
  /** Whether the request itself may have caused it, so that it says nothing about the upstream's health. Default: no. */
  readonly requestBound?: boolean;
  /** Whether the provider refused the request before it generated anything, so that it bills nothing. Default: no. */
  readonly refused?: boolean;
  /** The HTTP status that the provider answered. */
  readonly upstreamStatus?: number;
  /** The upstream models that were tried before this failure became the answer. */
  readonly attempts?: readonly Attempt[];
  /** The caller's limits as they were when one of them refused the request. */
  readonly limits?: LimitFacts;
  /** For the log only; never shown to a caller. */
  readonly cause?: unknown;
}

const MAX_MESSAGE_CHARS = 1000;
const MAX_FIELD_CHARS = 256;
const MAX_VIOLATIONS = 20;

/**
 * A text that may hold what a caller or a provider wrote, cut to a sane length and without half characters: a lone
 * surrogate has no UTF-8, and encoding it throws in places that cannot throw.
 */
function toShownText(text: string, maxChars: number): string {
  return (text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`).toWellFormed();
}

const TRANSIENT: ReadonlySet<FailureCode> = new Set([
  "upstream_unavailable",
  "upstream_protocol",
  "upstream_rate_limited",
]);

/** A provider that answers one of these has generated nothing. */
const REFUSALS: ReadonlySet<FailureCode> = new Set([
  "upstream_rejected",
  "upstream_rate_limited",
  "upstream_refused_us",
]);

/** The one error type. Core and the adapters construct it, only the entrances encode it. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly detail: FailureDetail | undefined;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;
  readonly transient: boolean;
  readonly requestBound: boolean;
  readonly refused: boolean;
  readonly upstreamStatus: number | undefined;
  readonly attempts: readonly Attempt[];
  readonly limits: LimitFacts | undefined;

  /** `message` is shown to the caller: it holds no secret, no address and no word of an upstream's internals. */
  constructor(code: FailureCode, message: string, options: FailureOptions = {}) {
    super(toShownText(message, MAX_MESSAGE_CHARS), { cause: options.cause });
    this.code = code;
    this.detail = options.detail;
    this.violations = (options.violations ?? []).slice(0, MAX_VIOLATIONS).map(({ field, description }) => ({
      field: toShownText(field, MAX_FIELD_CHARS),
      description: toShownText(description, MAX_FIELD_CHARS),
    }));
    this.retryAfterMs = options.retryAfterMs;
    this.transient = options.transient ?? TRANSIENT.has(code);
    this.requestBound = options.requestBound ?? false;
    this.refused = options.refused ?? REFUSALS.has(code);
    this.upstreamStatus = options.upstreamStatus;
    this.attempts = options.attempts ?? [];
    this.limits = options.limits;
  }

  /** The first offending field. */
  get param(): string | undefined {
    return this.violations[0]?.field;
  }

  /** The same failure with some of its facts changed. */
  with(changes: Pick<FailureOptions, "attempts" | "retryAfterMs" | "upstreamStatus" | "violations">): Failure {
    const { code, message, detail, violations, retryAfterMs, transient, requestBound, refused } = this;
    const { upstreamStatus, attempts, limits, cause } = this;
    return new Failure(code, message, {
      violations,
      transient,
      requestBound,
      refused,
      attempts,
      cause,
      ...(detail !== undefined && { detail }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(upstreamStatus !== undefined && { upstreamStatus }),
      ...(limits !== undefined && { limits }),
      ...changes,
    });
  }

  /** `reason` itself when it is a Failure, else an `internal` one that shows nothing of it. */
  static from(reason: unknown): Failure {
    return reason instanceof Failure
      ? reason
      : new Failure("internal", "The gateway failed unexpectedly.", { cause: reason });
  }
}

/** An `invalid_request` about one field. */
export function invalidField(field: string, description: string): Failure {
  return new Failure("invalid_request", `${field}: ${description}.`, { violations: [{ field, description }] });
}

/** What a call ends with when its caller's deadline has passed. */
export function deadlinePassed(): Failure {
  return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.");
}

import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { ownCopy } from "../encoding/own-copy.ts";
import type { Attempt } from "./attempt.ts";
import type { LimitFacts } from "./limiter.ts";

/** Codes of failures. `inbound/failure-table.ts` maps each to the status and code of every wire format. */
export type FailureCode =
  | "invalid_request"
  | "request_too_large"
  | "response_too_large"
  | "unauthenticated"
  | "permission_denied"
  | "stopped"
  | "model_not_found"
  | "not_found"
  | "conflict"
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

/** Details beyond the code that clients act on. */
export type FailureDetail =
  | "context_length_exceeded"
  | "upstream_overloaded"
  | "reauthentication_required"
  | "second_factor_required"
  | "previous_response_not_found"
  | "unsupported_value";

/**
 * Why the gateway itself answers `overloaded`, for the log and metrics. `load`: refused by admission; `ledger`: too many
 * entries wait to be written; `busy`: too much work of this kind is waiting.
 */
export type Unavailable =
  | "load"
  | "database"
  | "rates"
  | "ledger"
  | "core"
  | "token_issuer"
  | "shutting_down"
  | "busy"
  | "unknown";

/** An invalid field of a request: its path, such as `messages[2].content`, and what would be valid. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface FailureOptions {
  readonly detail?: FailureDetail;
  /** The invalid fields of an `invalid_request`; the first is shown as `error.param`. */
  readonly violations?: readonly FieldViolation[];
  /** How long to wait before trying again. */
  readonly retryAfterMs?: number;
  /** Whether a retry of the same upstream model may help. Default: depends on the code. */
  readonly transient?: boolean;
  /** Whether the request may have caused it, so that it does not count against the upstream's health. Default: false. */
  readonly requestBound?: boolean;
  /** Whether the provider refused the request before generating, so that it bills nothing. Default: false. */
  readonly refused?: boolean;
  /** Whether the provider reported it within its answer, and so has ended the answer itself. Default: false. */
  readonly inBand?: boolean;
  /** The provider's count of tokens for what failed. Default: none. */
  readonly usage?: Usage | undefined;
  /** HTTP status of the provider's response. */
  readonly upstreamStatus?: number;
  /** Attempts that were made before this failure was returned. */
  readonly attempts?: readonly Attempt[];
  /** The caller's limits when one of them refused the request. */
  readonly limits?: LimitFacts;
  /** What is unavailable, of `overloaded`. Default: `unknown`. */
  readonly unavailable?: Unavailable;
  /** Error message of the provider or the connection, without credentials. For administrators, never shown to a caller. Default: none. */
  readonly providerError?: string;
  /** For the log only; never shown to a caller. */
  readonly cause?: unknown;
}

const MAX_MESSAGE_CHARS = 1000;
const MAX_PROVIDER_ERROR_CHARS = 500;
const MAX_FIELD_CHARS = 256;
const MAX_VIOLATIONS = 20;

/**
 * Shortens a text that a caller or provider may have written. Replaces lone surrogates, which have no UTF-8 encoding, so that
 * encoding the text cannot throw. Returns a copy, because the text may hold slices of large texts in memory.
 */
function toShownText(text: string, maxChars: number): string {
  return ownCopy(text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`);
}

const TRANSIENT: ReadonlySet<FailureCode> = new Set([
  "upstream_unavailable",
  "upstream_protocol",
  "upstream_rate_limited",
]);

/** Codes of failures for which the provider has generated nothing. */
const REFUSALS: ReadonlySet<FailureCode> = new Set([
  "upstream_rejected",
  "upstream_rate_limited",
  "upstream_refused_us",
]);

/** The only error type. Core and providers create it; inbound encodes it. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly detail: FailureDetail | undefined;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;
  readonly transient: boolean;
  readonly requestBound: boolean;
  readonly refused: boolean;
  readonly inBand: boolean;
  readonly usage: Usage | undefined;
  readonly upstreamStatus: number | undefined;
  readonly attempts: readonly Attempt[];
  readonly limits: LimitFacts | undefined;
  readonly providerError: string | undefined;
  /** Undefined for other codes than `overloaded`. */
  readonly unavailable: Unavailable | undefined;

  /** `message` is shown to the caller: no secrets, no addresses, no internals of a provider. */
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
    this.inBand = options.inBand ?? false;
    this.usage = options.usage;
    this.upstreamStatus = options.upstreamStatus;
    this.attempts = options.attempts ?? [];
    this.limits = options.limits;
    this.providerError = options.providerError && toShownText(options.providerError, MAX_PROVIDER_ERROR_CHARS);
    this.unavailable = code === "overloaded" ? (options.unavailable ?? "unknown") : undefined;
  }

  /** Path of the first invalid field. */
  get param(): string | undefined {
    return this.violations[0]?.field;
  }

  /** A copy with other details. */
  with({
    message = this.message,
    ...changes
  }: Pick<FailureOptions, "attempts" | "requestBound" | "retryAfterMs" | "upstreamStatus" | "violations"> & {
    readonly message?: string;
  }): Failure {
    const { code, detail, violations, retryAfterMs, transient, requestBound, refused, inBand } = this;
    const { usage, upstreamStatus, attempts, limits, providerError, cause } = this;
    return new Failure(code, message, {
      violations,
      transient,
      requestBound,
      refused,
      inBand,
      usage,
      attempts,
      cause,
      ...(detail !== undefined && { detail }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(upstreamStatus !== undefined && { upstreamStatus }),
      ...(limits !== undefined && { limits }),
      ...(providerError !== undefined && { providerError }),
      ...changes,
    });
  }

  /**
   * Returns `reason` if it is a Failure, `overloaded` for the error of an unavailable database, and `internal` otherwise. In both
   * latter cases `reason` is only the cause.
   */
  static from(reason: unknown): Failure {
    if (reason instanceof Failure) return reason;
    if (reason instanceof Error && "isUnreachable" in reason)
      return new Failure("overloaded", "The database is unavailable at the moment. Try again shortly.", {
        retryAfterMs: 1_000,
        unavailable: "database",
        cause: reason,
      });
    return new Failure("internal", "The gateway failed unexpectedly.", { cause: reason });
  }
}

/** An `invalid_request` about one field. */
export function invalidField(field: string, description: string): Failure {
  return new Failure("invalid_request", `${field}: ${description}.`, { violations: [{ field, description }] });
}

/** The failure of a call whose deadline has passed. */
export function deadlinePassed(): Failure {
  return new Failure("deadline_exceeded", "The caller's deadline passed before the completion was done.");
}

/** Advice about one failure code, for the API reference and the dashboard. Backticks mark code. */
export interface FailureAdvice {
  /** Cause of the failure. */
  readonly means: string;
  /** What to do about it; `docs/errors.md` says the same. */
  readonly todo: string;
  /** Whether the same request may work another time: as it is, when some time has passed, or never. */
  readonly retry: "no" | "after a wait" | "once";
}

/** Every failure code, as it stands in the request log, in `parley.attempts`, and in upper case in gRPC's `ErrorInfo`. */
export const FAILURE_ADVICE: Readonly<Record<string, FailureAdvice>> = {
  invalid_request: {
    means: "The request is malformed, or a value is out of range.",
    todo: "Fix the field named in `error.param`; the message says what is allowed.",
    retry: "no",
  },
  request_too_large: {
    means: "The request body is too large.",
    todo: "Keep the body below 32 MiB, or the lower limit that the message names: send smaller images and files, or a shorter conversation.",
    retry: "no",
  },
  response_too_large: {
    means:
      "gRPC and Connect: the completion was made and charged, but is larger than `max_response_bytes` of the request (default over gRPC: 4 MiB).",
    todo: "Use `Stream`, whose images arrive in pieces, or raise `max_response_bytes` and the client’s own limit.",
    retry: "no",
  },
  unauthenticated: {
    means:
      "The API key is missing or invalid: mistyped, revoked, expired, or its account is disabled. A completion in flight also ends with this error when its key becomes invalid.",
    todo: "Send a valid key: `Authorization: Bearer sk_parley_…`.",
    retry: "no",
  },
  permission_denied: {
    means:
      "The key is valid but lacks permission for the model or the capability, or requires a label that the model lacks. A completion in flight also ends with this error when its key loses the permission.",
    todo: "Use a key with the model or capability that the message names, or add it to this key; or a model with the label.",
    retry: "no",
  },
  stopped: {
    means:
      "The session or the end user of the request is stopped until the time that the message names. A completion in flight also ends with this error when that happens.",
    todo: "Start a new session, or ask a member who may change the account's keys to remove the stop in the dashboard.",
    retry: "no",
  },
  model_not_found: {
    means: "The model in `model` or `fallback_models` does not exist.",
    todo: "Use a model listed by `GET /v1/models`.",
    retry: "no",
  },
  not_found: {
    means: "No endpoint matches the path and method.",
    todo: "Fix the path or the method (the `Allow` header lists the allowed methods).",
    retry: "no",
  },
  conflict: {
    means: "The dashboard’s services: what the request would change has changed meanwhile.",
    todo: "Read it again, and repeat the change from there.",
    retry: "no",
  },
  rate_limited: {
    means:
      "The key, its account or the request’s end user has reached its limit of requests per minute, tokens per minute or concurrent requests.",
    todo: "Retry after the `retry-after` delay, and reduce the request rate.",
    retry: "after a wait",
  },
  budget_spent: {
    means: "The budget of the key, its account, or the request’s end user or session is exhausted.",
    todo: "Raise the budget, or wait until it resets at the time in the message.",
    retry: "no",
  },
  overloaded: {
    means: "Parley is at capacity or temporarily unavailable.",
    todo: "Retry after the `retry-after` delay.",
    retry: "after a wait",
  },
  upstream_rejected: {
    means: "The provider rejected the request; the message says why.",
    todo: "Fix what the message names. For `context_length_exceeded` (gRPC: reason CONTEXT_LENGTH_EXCEEDED), shorten the conversation or use a model with a larger context window.",
    retry: "no",
  },
  upstream_rate_limited: {
    means: "The provider rate-limits this installation.",
    todo: "Retry after the `retry-after` delay, or set `fallback_models`.",
    retry: "after a wait",
  },
  upstream_unavailable: {
    means:
      "The provider is unreachable, failing or overloaded (`upstream_overloaded`), its circuit breaker is open, or all connections to it are in use.",
    todo: "Retry after the `retry-after` delay, or set `fallback_models`.",
    retry: "after a wait",
  },
  upstream_timeout: {
    means: "The provider did not respond in time.",
    todo: "Retry, stream the response, request fewer tokens, or set `fallback_models`.",
    retry: "after a wait",
  },
  upstream_protocol: {
    means: "The provider’s response was truncated or could not be parsed.",
    todo: "Retry once, or set `fallback_models`. If it persists, contact the operator.",
    retry: "once",
  },
  upstream_refused_us: {
    means: "The provider rejected Parley’s configuration: the credential or the upstream model name.",
    todo: "If the message names the account’s own credential, replace it; otherwise contact the operator. Meanwhile, set `fallback_models` of another provider.",
    retry: "no",
  },
  deadline_exceeded: {
    means: "The deadline set by the client has passed, or a report of the dashboard takes the database too long.",
    todo: "Set a longer deadline, stream the response, or request fewer tokens; for a report choose a shorter time, an account or a key.",
    retry: "once",
  },
  cancelled: {
    means: "The client disconnected before the response was complete.",
    todo: "Nothing, if intended. Otherwise check the timeouts of the client and of proxies in front of Parley.",
    retry: "once",
  },
  internal: {
    means: "An internal error in Parley.",
    todo: "Report it to the operator, with the `x-request-id`.",
    retry: "once",
  },
};

/** What to do about a failure; undefined for a code that is not in the table, such as one that a newer Parley has recorded. */
export function adviceFor(code: string): FailureAdvice | undefined {
  return Object.hasOwn(FAILURE_ADVICE, code) ? FAILURE_ADVICE[code] : undefined;
}

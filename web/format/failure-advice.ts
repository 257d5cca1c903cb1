/** What somebody needs to know about one failure code. Backticks mark what is written as code. */
export interface FailureAdvice {
  /** What has happened. */
  readonly means: string;
  /** What to do about it; `docs/errors.md` says the same. */
  readonly todo: string;
  /** Whether the same request may work another time: as it is, when some time has passed, or never. */
  readonly retry: "no" | "after a wait" | "once";
}

/** Every failure code, as it stands in the request log, in `parley.attempts`, and in upper case in gRPC's `ErrorInfo`. */
export const FAILURE_ADVICE: Readonly<Record<string, FailureAdvice>> = {
  invalid_request: {
    means: "The request cannot be understood, or a value in it is out of range.",
    todo: "Correct the field in `error.param`; the message says what would be right.",
    retry: "no",
  },
  request_too_large: {
    means: "The request is larger than Parley reads.",
    todo: "Send less than 32 MiB: smaller pictures and files, or a shorter conversation.",
    retry: "no",
  },
  unauthenticated: {
    means:
      "There is no API key in the request, or it is not valid: mistyped, revoked, expired, or of a disabled account. It also ends a completion in flight when its key stops being valid.",
    todo: "Send a valid key: `Authorization: Bearer sk_parley_…`.",
    retry: "no",
  },
  permission_denied: {
    means:
      "The key is valid, but may not use the model or do what was asked; a completion in flight ends with it when its key loses either.",
    todo: "Use a key that has the model or the capability that the message names, or have it added to this one.",
    retry: "no",
  },
  model_not_found: {
    means: "There is no model of this name, as `model` or among `fallback_models`.",
    todo: "Choose one of `GET /v1/models`.",
    retry: "no",
  },
  not_found: {
    means: "There is nothing at this address, or it has another method.",
    todo: "Correct the path or the method (`Allow` says which).",
    retry: "no",
  },
  rate_limited: {
    means: "The key or its account has used up its requests, tokens or parallel requests for the moment.",
    todo: "Wait as `retry-after` says, then send the request again; send fewer at a time.",
    retry: "after a wait",
  },
  budget_spent: {
    means: "The budget of the key or of its account is spent for this month.",
    todo: "Raise the budget, or wait for the next month.",
    retry: "no",
  },
  overloaded: {
    means: "Parley itself cannot take this now.",
    todo: "Wait as `retry-after` says, then send the request again.",
    retry: "after a wait",
  },
  upstream_rejected: {
    means: "The provider refused the request; the message says why.",
    todo: "Change what the message names. With `context_length_exceeded`: shorten the conversation, or use a model with a larger context window.",
    retry: "no",
  },
  upstream_rate_limited: {
    means: "The provider limits how much this installation may send.",
    todo: "Wait as `retry-after` says, or name `fallback_models`.",
    retry: "after a wait",
  },
  upstream_unavailable: {
    means:
      "The provider cannot be reached, is failing, has too much to do (`upstream_overloaded`), or all connections to it are in use.",
    todo: "Wait as `retry-after` says, or name `fallback_models`.",
    retry: "after a wait",
  },
  upstream_timeout: {
    means: "The provider was silent for too long.",
    todo: "Try again, ask for a stream or for fewer tokens, or name `fallback_models`.",
    retry: "after a wait",
  },
  upstream_protocol: {
    means: "The provider’s answer was cut short or could not be read.",
    todo: "Try again once, or name `fallback_models`; tell the operator when it stays so.",
    retry: "once",
  },
  upstream_refused_us: {
    means: "The provider does not accept what Parley is configured with: its credential, or the model’s name there.",
    todo: "Tell the operator, and name `fallback_models` of another provider meanwhile.",
    retry: "no",
  },
  deadline_exceeded: {
    means: "The time that the caller gave the request has passed.",
    todo: "Give it more time, ask for a stream, or for fewer tokens.",
    retry: "once",
  },
  cancelled: {
    means: "The caller left before the answer was complete.",
    todo: "Nothing, if that was meant. Otherwise look for a timeout in the client or in a proxy before Parley.",
    retry: "once",
  },
  internal: {
    means: "A fault in Parley.",
    todo: "Report it to the operator with the `x-request-id`.",
    retry: "once",
  },
};

/** What to do about a failure; undefined for a code that these pages do not know, such as one of a newer Parley. */
export function adviceFor(code: string): FailureAdvice | undefined {
  return Object.hasOwn(FAILURE_ADVICE, code) ? FAILURE_ADVICE[code] : undefined;
}

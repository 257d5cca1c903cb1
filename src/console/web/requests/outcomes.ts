/** What became of a request, for people. */
export interface Outcome {
  readonly label: string;
  readonly look: "good" | "warn" | "danger" | "plain";
  /** What it means. */
  readonly meaning: string;
  /** What to do about it; empty when there is nothing to do. */
  readonly advice: string;
}

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  served: { label: "Served", look: "good", meaning: "The answer reached the caller as a whole.", advice: "" },
  invalid_request: {
    label: "Invalid",
    look: "warn",
    meaning: "The request is not one that can be answered.",
    advice: "Correct what the message names. Sending it again as it is does not help.",
  },
  request_too_large: {
    label: "Too large",
    look: "warn",
    meaning: "The request is larger than Parley reads.",
    advice: "Send fewer or smaller pictures and files, or link to them.",
  },
  unauthenticated: {
    label: "Not authenticated",
    look: "warn",
    meaning: "The key is missing, unknown, expired or revoked.",
    advice: "Check the key that the program uses, or make a new one.",
  },
  permission_denied: {
    label: "Not permitted",
    look: "warn",
    meaning: "The key may not be used for this model or this kind of answer.",
    advice: "Edit the key’s models and permissions, or use another key.",
  },
  model_not_found: {
    label: "Unknown model",
    look: "warn",
    meaning: "There is no model of this name here.",
    advice: "Use one of the names on the Models page.",
  },
  not_found: {
    label: "Unknown address",
    look: "warn",
    meaning: "There is nothing at this address.",
    advice: "Check the base URL that the program uses: it ends in /v1.",
  },
  rate_limited: {
    label: "Rate limited",
    look: "warn",
    meaning: "The key or its account has used up its requests, tokens or places at that moment.",
    advice: "Wait and try again, spread the requests, or have the limits raised.",
  },
  budget_spent: {
    label: "Budget spent",
    look: "warn",
    meaning: "The budget of the key or its account is spent for this month.",
    advice: "Raise the budget, or wait for the next month (UTC).",
  },
  overloaded: {
    label: "Overloaded",
    look: "danger",
    meaning: "Parley could not take the request at that moment, or was shutting down.",
    advice: "Try again in a moment. If it stays so, whoever runs Parley should look at its database and its load.",
  },
  upstream_rejected: {
    label: "Rejected by provider",
    look: "danger",
    meaning: "The provider did not accept the request.",
    advice: "Read its reason in the attempts: often the prompt is too long, or the model cannot do what was asked.",
  },
  upstream_rate_limited: {
    label: "Provider limits us",
    look: "danger",
    meaning: "The provider takes no more requests from us for a while.",
    advice: "Name a fallback model, send less at once, or have the provider’s limit raised.",
  },
  upstream_unavailable: {
    label: "Provider unavailable",
    look: "danger",
    meaning: "The provider could not be reached, or failed.",
    advice: "Try again, or name a fallback model, which is then asked at once.",
  },
  upstream_timeout: {
    label: "Provider timed out",
    look: "danger",
    meaning: "The provider did not answer, or fell silent, for longer than the model’s time limits allow.",
    advice: "Try again, name a fallback model, or stream the answer. The limits are in the configuration.",
  },
  upstream_protocol: {
    label: "Unreadable answer",
    look: "danger",
    meaning: "The provider’s answer was cut off, or is not what its interface promises.",
    advice: "Try again, or name a fallback model. If it stays so, tell whoever runs Parley.",
  },
  upstream_refused_us: {
    label: "Provider refused us",
    look: "danger",
    meaning: "The provider does not take Parley’s credential, or does not know the model by the configured name.",
    advice: "Whoever runs Parley has to correct the provider’s key or the model’s entry in the configuration.",
  },
  deadline_exceeded: {
    label: "Deadline passed",
    look: "warn",
    meaning: "The caller’s own deadline passed before the answer was whole.",
    advice: "Allow more time, stream the answer, or ask a faster model.",
  },
  cancelled: {
    label: "Cancelled",
    look: "plain",
    meaning: "The caller left before the answer was whole.",
    advice:
      "Nothing to do if that was intended. Otherwise look for a time limit in the program or in a proxy before it.",
  },
  internal: {
    label: "Fault in Parley",
    look: "danger",
    meaning: "Parley itself failed.",
    advice: "Tell whoever runs Parley, with the request’s ID: its log has the reason.",
  },
  skipped: {
    label: "Skipped",
    look: "plain",
    meaning: "The model was not asked.",
    advice: "",
  },
};

/** Every outcome that a request can have, in the order in which people look for them. */
export const REQUEST_OUTCOMES: readonly (readonly [code: string, label: string])[] = Object.entries(OUTCOMES)
  .filter(([code]) => code !== "skipped")
  .map(([code, { label }]) => [code, label]);

/** What is known of an outcome; one of a newer version is shown by its code. */
export function outcomeOf(code: string): Outcome {
  const known = Object.hasOwn(OUTCOMES, code) ? OUTCOMES[code] : undefined;
  return known ?? { label: code, look: "plain", meaning: "", advice: "" };
}

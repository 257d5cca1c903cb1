/** Label of the status of a request or an attempt. Explanations are in `failure-advice.ts`. */
export interface Outcome {
  readonly label: string;
  readonly look: "good" | "warn" | "danger" | "plain";
}

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  served: { label: "Success", look: "good" },
  invalid_request: { label: "Invalid request", look: "warn" },
  request_too_large: { label: "Request too large", look: "warn" },
  response_too_large: { label: "Response too large", look: "warn" },
  unauthenticated: { label: "Unauthenticated", look: "warn" },
  permission_denied: { label: "Permission denied", look: "warn" },
  stopped: { label: "Stopped", look: "warn" },
  model_not_found: { label: "Model not found", look: "warn" },
  not_found: { label: "Not found", look: "warn" },
  conflict: { label: "Changed meanwhile", look: "warn" },
  rate_limited: { label: "Rate limited", look: "warn" },
  budget_spent: { label: "Budget exceeded", look: "warn" },
  overloaded: { label: "Gateway overloaded", look: "danger" },
  upstream_rejected: { label: "Rejected by provider", look: "danger" },
  upstream_rate_limited: { label: "Rate limited by provider", look: "danger" },
  upstream_unavailable: { label: "Provider unavailable", look: "danger" },
  upstream_timeout: { label: "Provider timeout", look: "danger" },
  upstream_protocol: { label: "Invalid provider response", look: "danger" },
  upstream_refused_us: { label: "Provider auth error", look: "danger" },
  deadline_exceeded: { label: "Deadline exceeded", look: "warn" },
  cancelled: { label: "Cancelled", look: "plain" },
  process_lost: { label: "Gateway process lost", look: "danger" },
  internal: { label: "Gateway error", look: "danger" },
  skipped: { label: "Skipped", look: "plain" },
};

/** All outcomes of a request, in display order. */
export const REQUEST_OUTCOMES: readonly (readonly [code: string, label: string])[] = Object.entries(OUTCOMES)
  .filter(([code]) => code !== "skipped")
  .map(([code, { label }]) => [code, label]);

/** Returns label and colour of an outcome. An unknown outcome of a newer version is labelled with its code. */
export function outcomeOf(code: string): Outcome {
  const known = Object.hasOwn(OUTCOMES, code) ? OUTCOMES[code] : undefined;
  return known ?? { label: code, look: "plain" };
}

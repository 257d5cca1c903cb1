/** How people call what became of a request or an attempt; `failure-advice.ts` says what to do about it. */
export interface Outcome {
  readonly label: string;
  readonly look: "good" | "warn" | "danger" | "plain";
}

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  served: { label: "Served", look: "good" },
  invalid_request: { label: "Invalid", look: "warn" },
  request_too_large: { label: "Too large", look: "warn" },
  unauthenticated: { label: "Not authenticated", look: "warn" },
  permission_denied: { label: "Not permitted", look: "warn" },
  model_not_found: { label: "Unknown model", look: "warn" },
  not_found: { label: "Unknown address", look: "warn" },
  rate_limited: { label: "Rate limited", look: "warn" },
  budget_spent: { label: "Budget spent", look: "warn" },
  overloaded: { label: "Overloaded", look: "danger" },
  upstream_rejected: { label: "Rejected by provider", look: "danger" },
  upstream_rate_limited: { label: "Provider limits us", look: "danger" },
  upstream_unavailable: { label: "Provider unavailable", look: "danger" },
  upstream_timeout: { label: "Provider timed out", look: "danger" },
  upstream_protocol: { label: "Unreadable answer", look: "danger" },
  upstream_refused_us: { label: "Provider refused us", look: "danger" },
  deadline_exceeded: { label: "Deadline passed", look: "warn" },
  cancelled: { label: "Cancelled", look: "plain" },
  internal: { label: "Fault in Parley", look: "danger" },
  skipped: { label: "Skipped", look: "plain" },
};

/** Every outcome that a request can have, in the order in which people look for them. */
export const REQUEST_OUTCOMES: readonly (readonly [code: string, label: string])[] = Object.entries(OUTCOMES)
  .filter(([code]) => code !== "skipped")
  .map(([code, { label }]) => [code, label]);

/** What is known of an outcome; one of a newer version is shown by its code. */
export function outcomeOf(code: string): Outcome {
  const known = Object.hasOwn(OUTCOMES, code) ? OUTCOMES[code] : undefined;
  return known ?? { label: code, look: "plain" };
}

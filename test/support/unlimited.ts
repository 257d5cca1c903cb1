/** Configuration `limits` that never limit the default account. */
export const UNLIMITED = {
  requests_per_minute: "unlimited",
  tokens_per_minute: "unlimited",
  concurrent_requests: "unlimited",
} as const;

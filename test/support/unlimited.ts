/** `limits` of a configuration in which the default account may do as much as it likes. */
export const UNLIMITED = {
  requests_per_minute: "unlimited",
  tokens_per_minute: "unlimited",
  concurrent_requests: "unlimited",
} as const;

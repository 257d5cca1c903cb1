/** What every answer of the console's services carries, errors too: they are data for its own page and nothing else. */
export function securityHeaders(isSecure: boolean): readonly (readonly [name: string, value: string])[] {
  return [
    ["cache-control", "no-store"],
    ["content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
    ["referrer-policy", "no-referrer"],
    ["x-content-type-options", "nosniff"],
    ...(isSecure ? ([["strict-transport-security", "max-age=31536000"]] as const) : []),
  ];
}

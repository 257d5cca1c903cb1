type HeaderList = readonly (readonly [name: string, value: string])[];

/** What every answer of the console's services carries, errors too: they are data for its own page and nothing else. */
export function securityHeaders(isSecure: boolean): HeaderList {
  return [
    ["cache-control", "no-store"],
    ["content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
    ...everywhere(isSecure),
  ];
}

/**
 * What every page and file of the dashboard carries. Scripts and styles are files of this origin, nothing is evaluated or
 * taken for HTML, nothing is asked of others, and no other page shows it in a frame.
 */
export function pageHeaders(isSecure: boolean): HeaderList {
  return [["content-security-policy", PAGE_POLICY], ...everywhere(isSecure)];
}

const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // What models draw arrives as data, and pictures to be sent are shown before they are.
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "object-src 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  // No policy of any name: nothing can declare a text to be trusted.
  "trusted-types 'none'",
].join("; ");

function everywhere(isSecure: boolean): HeaderList {
  return [
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
    ["referrer-policy", "no-referrer"],
    ["x-content-type-options", "nosniff"],
    ...(isSecure ? ([["strict-transport-security", "max-age=31536000"]] as const) : []),
  ];
}

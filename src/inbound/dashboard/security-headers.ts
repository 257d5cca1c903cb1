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
  return [["content-security-policy", policyOf(PAGE_POLICY)], ...everywhere(isSecure)];
}

/** Headers of the API reference: the strictest policy under which Redoc works. */
export function referenceHeaders(isSecure: boolean): HeaderList {
  return [["content-security-policy", policyOf(REFERENCE_POLICY)], ...everywhere(isSecure)];
}

const PAGE_POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  // What models draw arrives as data, and pictures to be sent are shown before they are.
  "img-src": "'self' data: blob:",
  "font-src": "'self'",
  "connect-src": "'self'",
  "form-action": "'self'",
  "base-uri": "'none'",
  "object-src": "'none'",
  "frame-ancestors": "'none'",
  "require-trusted-types-for": "'script'",
  // No policy of any name: nothing can declare a text to be trusted.
  "trusted-types": "'none'",
} as const;

/** The hash of an empty `<style>` element, to which styled-components adds rules through the CSSOM. */
const EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
/** The hash of perfect-scrollbar's style sheet, which Redoc contains. The browser test of the page verifies it. */
const SCROLLBAR_STYLE = "'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='";

const REFERENCE_POLICY = {
  ...PAGE_POLICY,
  "style-src": `'self' ${EMPTY_STYLE} ${SCROLLBAR_STYLE}`,
  "img-src": "'self' data:",
  "font-src": "'none'",
  "form-action": "'none'",
  // The search index runs in a worker that the page creates from a blob; the worker inherits this policy.
  "worker-src": "blob:",
  // `default` passes HTML through DOMPurify; `dompurify` is the one that DOMPurify itself needs.
  "trusted-types": "default dompurify",
} as const;

function policyOf(directives: Readonly<Record<string, string>>): string {
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources}`)
    .join("; ");
}

function everywhere(isSecure: boolean): HeaderList {
  return [
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
    ["referrer-policy", "no-referrer"],
    ["x-content-type-options", "nosniff"],
    ...(isSecure ? ([["strict-transport-security", "max-age=31536000"]] as const) : []),
  ];
}

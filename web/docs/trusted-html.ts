import DOMPurify from "dompurify";

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createHTML(text: string): string; createScriptURL(address: string): string },
  ): unknown;
}

/**
 * Allows Redoc to assign text to `innerHTML`, which the page's policy forbids (`require-trusted-types-for 'script'`).
 * The browser then passes each such text to the policy named `default`: HTML passes through DOMPurify, workers (the
 * search) may come only from blobs of this page, and text never becomes a script.
 */
export function sanitizeAssignedHtml(): void {
  // A field has the same description wherever it occurs.
  const sanitized = new Map<string, string>();
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  trustedTypes?.createPolicy("default", {
    createHTML(text) {
      const html = sanitized.get(text) ?? DOMPurify.sanitize(text);
      sanitized.set(text, html);
      return html;
    },
    createScriptURL(address) {
      if (!address.startsWith(`blob:${location.origin}/`)) throw new TypeError(`no scripts from ${address}`);
      return address;
    },
  });
}

import DOMPurify from "dompurify";

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createHTML(text: string): string; createScriptURL(address: string): string },
  ): unknown;
}

/**
 * Allows Redoc to assign text to `innerHTML`, which the page's policy forbids (`require-trusted-types-for 'script'`). From now
 * on the browser hands each such text to the policy named `default`: HTML passes through DOMPurify, workers come from
 * blobs of this page (the search), and text never becomes a script.
 */
export function sanitizeAssignedHtml(): void {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  trustedTypes?.createPolicy("default", {
    createHTML: (text) => DOMPurify.sanitize(text),
    createScriptURL(address) {
      if (!address.startsWith(`blob:${location.origin}/`)) throw new TypeError(`no scripts from ${address}`);
      return address;
    },
  });
}

/**
 * Replaces API keys in a text that is logged or stored. Callers put their keys into paths, model names and request IDs by mistake.
 */
export function hideKeys(text: string): string {
  return text.includes("sk_parley_") ? text.replaceAll(/sk_parley_[0-9A-Za-z_]+/g, "sk_parley_[redacted]") : text;
}

/** Credentials of providers by their prefixes, at the beginning of a word. In JSON the word may follow an escaped line break. */
const CREDENTIALS =
  /(?:(?<![0-9A-Za-z])|(?<=\\[nrt]))(sk-|AIza|AKIA|ASIA|gsk_|hf_|xai-|pplx-|r8_|ya29\.)[0-9A-Za-z_-]{16,}/g;

/** Replaces API keys, and texts that look like a provider's credential, in stored content. */
export function hideCredentials(text: string): string {
  return hideKeys(text).replaceAll(CREDENTIALS, "$1[redacted]");
}

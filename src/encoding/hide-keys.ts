/**
 * Replaces API keys in a text that is logged or stored. Callers put their keys into paths, models' names and request IDs by mistake.
 */
export function hideKeys(text: string): string {
  return text.includes("sk_parley_") ? text.replaceAll(/sk_parley_[0-9A-Za-z_]+/g, "sk_parley_[redacted]") : text;
}

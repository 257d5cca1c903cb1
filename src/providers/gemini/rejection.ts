import { scrub } from "../scrub.ts";

/**
 * The provider's own words about what is wrong with a request, as a caller may see them; a neutral sentence when nothing
 * is left of them, or when they are not about the request.
 */
export function toRejectionMessage(upstream: string): string {
  return scrub(upstream) || "The upstream provider rejected the request.";
}

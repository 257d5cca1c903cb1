import { Failure } from "./failure.ts";

/**
 * Header with the number of gateways that a request has passed. Sent to providers of the OpenAI dialect, which may be such a
 * gateway, and from a front to its core.
 */
export const HOPS_HEADER = "x-parley-hops";

/** One gateway behind another is supported. A longer chain is most likely a `base_url` that leads back to this gateway. */
const MAX_HOPS = 2;

/** The headers of a provider, which count this gateway only, for a call that has come through `hops` other gateways. */
export function withHops(
  headers: Readonly<Record<string, string>>,
  { hops = 0 }: { readonly hops?: number | undefined },
): Readonly<Record<string, string>> {
  return hops === 0 ? headers : { ...headers, [HOPS_HEADER]: String(hops + 1) };
}

/** Number of gateways that a request has passed. 0 for a header that is missing or not a number. */
export function readHops(header: string | readonly string[] | undefined): number {
  return typeof header === "string" && /^\d{1,3}$/.test(header) ? Number(header) : 0;
}

/** Throws `invalid_request` for a request that loops between gateways. */
export function refuseCircles(hops: number): void {
  if (hops < MAX_HOPS) return;
  throw new Failure(
    "invalid_request",
    `The request has come through ${hops} gateways already. Does a provider's base_url lead back to its own gateway?`,
  );
}

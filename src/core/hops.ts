import { Failure } from "./failure.ts";

/**
 * Says how many gateways a request has come through so far. It goes with every request to a provider of the OpenAI
 * dialect, which may be a gateway like this one, and from a front to its core.
 */
export const HOPS_HEADER = "x-parley-hops";

/** One gateway behind another is meant. More are most likely a `base_url` that leads back to where it came from. */
const MAX_HOPS = 2;

/** How many gateways a request has come through, by the header's value. What is no such number says nothing. */
export function readHops(header: string | readonly string[] | undefined): number {
  return typeof header === "string" && /^\d{1,3}$/.test(header) ? Number(header) : 0;
}

/** Throws `invalid_request` for a request that goes round in circles. */
export function refuseCircles(hops: number): void {
  if (hops < MAX_HOPS) return;
  throw new Failure(
    "invalid_request",
    `The request has come through ${hops} gateways already. Does a provider's base_url lead back to its own gateway?`,
  );
}

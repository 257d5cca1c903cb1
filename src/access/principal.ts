import type { Capability, Principal } from "../core/principal.ts";

/** Every capability there is: what a new key has unless chosen otherwise. */
export const CAPABILITIES = ["chat", "images"] as const satisfies readonly Capability[];

/** What is left of an API key once it has been checked. */
export interface KeyPrincipal extends Principal {
  /** Unix milliseconds; undefined for a key that does not expire. */
  readonly expiresAtMs: number | undefined;
}

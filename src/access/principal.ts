import type { Capability, Principal } from "../core/principal.ts";
import type { KeyGrant } from "./key-store.ts";

/** Every capability there is: what a new key has unless chosen otherwise. */
export const CAPABILITIES = ["chat", "images"] as const satisfies readonly Capability[];

/** What is left of an API key once it has been checked. */
export interface KeyPrincipal extends Principal {
  /** Unix milliseconds; undefined for a key that does not expire. */
  readonly expiresAtMs: number | undefined;
}

/** Who the holder of a key is. Undefined for a revoked key, and for one of a disabled account. */
export function toPrincipal({ record, accountLimits, accountDisabled }: KeyGrant): KeyPrincipal | undefined {
  if (record.revokedAtMs !== undefined || accountDisabled) return undefined;
  return {
    keyId: record.id,
    lineId: record.lineId,
    keyName: record.name,
    accountId: record.accountId,
    models: record.models === "all" ? undefined : new Set(record.models),
    capabilities: new Set(record.capabilities),
    limits: record.limits,
    accountLimits,
    expiresAtMs: record.expiresAtMs,
  };
}

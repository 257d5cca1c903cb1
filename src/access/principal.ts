import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { type Capability, mayUse, type Needs, type Principal } from "../core/principal.ts";
import type { KeyGrant } from "./key-store.ts";

/** Every capability there is: what a new key has unless chosen otherwise. */
export const CAPABILITIES = ["chat", "images"] as const satisfies readonly Capability[];

/** What is left of an API key once it has been checked. */
export interface KeyPrincipal extends Principal {
  /** Unix milliseconds; undefined for a key that does not expire. */
  readonly expiresAtMs: number | undefined;
  /** The key's whole hash, by which it is looked up again. */
  readonly hash: string;
  /** When the store was asked for what is said here, by the clock's `monotonic`. */
  readonly confirmedAtMs: number;
}

/** Whether the key's time is over. */
export function isExpired({ expiresAtMs }: KeyPrincipal, clock: Clock): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= clock.now();
}

/** Who the holder of a key is. Undefined for a revoked key, and for one of a disabled account. */
export function toPrincipal(
  { record, accountLimits, accountDisabled }: KeyGrant,
  asked: Pick<KeyPrincipal, "hash" | "confirmedAtMs">,
): KeyPrincipal | undefined {
  if (record.revokedAtMs !== undefined || accountDisabled) return undefined;
  return {
    keyId: record.id,
    keyFamilyId: record.keyFamilyId,
    keyName: record.name,
    accountId: record.accountId,
    models: record.models === "all" ? undefined : new Set(record.models),
    capabilities: new Set(record.capabilities),
    options: record.options === "default" ? undefined : new Set(record.options),
    limits: record.limits,
    accountLimits,
    expiresAtMs: record.expiresAtMs,
    ...asked,
  };
}

/** Throws a `permission_denied` Failure that names the first model, or the capability, that the key lacks. */
export function permit(principal: Principal, { models, capability }: Needs): void {
  if (!principal.capabilities.has(capability)) {
    throw new Failure("permission_denied", `This API key lacks the capability "${capability}".`);
  }
  const refused = models.find((model) => !mayUse(principal, model));
  if (refused !== undefined) {
    throw new Failure("permission_denied", `This API key may not use the model "${refused}".`);
  }
}

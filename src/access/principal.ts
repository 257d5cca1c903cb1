import { type Clock, systemClock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { describeRequirement, firstUnmet, requirementsOf } from "../core/labels.ts";
import { stoppedBy } from "../core/stops.ts";
import { type Capability, mayUse, type Needs, type Principal } from "../core/principal.ts";
import type { KeyGrant } from "./key-store.ts";

/** All capabilities; the default of a new key. */
export const CAPABILITIES = ["chat", "images", "embeddings"] as const satisfies readonly Capability[];

/** The principal of an authenticated API key. */
export interface KeyPrincipal extends Principal {
  /** Unix milliseconds; undefined for a key that does not expire. */
  readonly expiresAtMs: number | undefined;
  /** The whole hash of the key, for further look-ups. */
  readonly hash: string;
  /** Time of the store query for these facts, by the clock's `monotonic`. */
  readonly confirmedAtMs: number;
  /** Whether the caller's certificate or token still stands for the key; undefined for callers without one in its place. */
  readonly isBound?: () => boolean;
}

/** Whether the key has expired. */
export function isExpired({ expiresAtMs }: KeyPrincipal, clock: Clock): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= clock.now();
}

/** Makes the principal of a key. Undefined for a revoked key, and for one of a disabled account. */
export function toPrincipal(
  { record, accountLimits, accountDisabled, routing, stops }: KeyGrant,
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
    requiredLabels: Object.keys(record.requiredLabels).length === 0 ? undefined : record.requiredLabels,
    tags: record.tags.length === 0 ? undefined : new Set(record.tags),
    storesContent: record.storesContent,
    routing,
    stops,
    limits: record.limits,
    attributionLimits: record.attributionLimits,
    accountLimits,
    expiresAtMs: record.expiresAtMs,
    ...asked,
  };
}

/**
 * Throws a `permission_denied` Failure that names the first model, the capability, or the required label, that the key lacks, and a
 * `stopped` one for a session or end user that is stopped.
 */
export function permit(
  principal: Principal,
  { models, capability, labels = [], attribution }: Needs,
  clock: Pick<Clock, "now"> = systemClock,
): void {
  if (principal.stops !== undefined && attribution !== undefined) {
    const stopped = stoppedBy(principal.stops, attribution, clock.now());
    if (stopped !== undefined) throw stopped;
  }
  if (!principal.capabilities.has(capability)) {
    throw new Failure("permission_denied", `This API key lacks the capability "${capability}".`);
  }
  const refused = models.find((model) => !mayUse(principal, model));
  if (refused !== undefined) {
    throw new Failure("permission_denied", `This API key may not use the model "${refused}".`);
  }
  if (labels.length === 0) return;
  const required = requirementsOf(principal.requiredLabels, undefined);
  const unmet = labels.map((one) => firstUnmet(one, required)).find((one) => one !== undefined);
  if (unmet !== undefined)
    throw new Failure(
      "permission_denied",
      `All models of this request must be of ${describeRequirement(unmet)}; one of them is not.`,
    );
}

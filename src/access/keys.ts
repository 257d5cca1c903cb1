import type { Clock } from "../core/clock.ts";
import { Failure, invalidField } from "../core/failure.ts";
import { type Capability, type Limits, NO_LIMITS } from "../core/principal.ts";
import { displayApiKey, generateApiKey, hashApiKey } from "./api-key.ts";
import { randomBase62 } from "./base62.ts";
import { DEFAULT_ACCOUNT_ID, type KeyChanges, type KeyRecord, type KeyStore, type NewKey } from "./key-store.ts";
import { checkLimits } from "./limits.ts";
import { checkName, unknownId } from "./names.ts";
import { CAPABILITIES } from "./principal.ts";

const HOUR_MS = 60 * 60 * 1000;

/** How long a key may go on working after its rotation, in milliseconds. */
export const GRACES = { "0": 0, "1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS } as const;

export type Grace = keyof typeof GRACES;

/** How long after its making a key that has been rotated may be used, unless chosen otherwise. */
export const DEFAULT_GRACE: Grace = "24h";

/** How many keys an account may have that are neither expired nor revoked. */
export const MAX_WORKING_KEYS = 1000;

/** Where keys are kept, and the time. */
export interface KeyContext {
  readonly store: KeyStore;
  readonly clock: Clock;
}

export interface KeyRequest {
  /** 1 to 100 characters without control characters. Need not be unique. */
  readonly name: string;
  /** Default: all, also those that are added later. */
  readonly models?: readonly string[] | "all" | undefined;
  /** Default: all. */
  readonly capabilities?: readonly Capability[] | undefined;
  /** Default: does not expire. */
  readonly lifetimeMs?: number | undefined;
  /** Default: those of its account. */
  readonly limits?: Limits | undefined;
  readonly accountId?: string | undefined;
}

/** A key at the only moment its secret is known. */
export interface CreatedKey {
  readonly secret: string;
  readonly record: KeyRecord;
}

/**
 * Makes a key. It works at once. Throws an `invalid_request` Failure for a name or list that cannot be, and for an account that has
 * as many as it may.
 */
export async function createKey({ store, clock }: KeyContext, request: KeyRequest): Promise<CreatedKey> {
  const { lifetimeMs, accountId = DEFAULT_ACCOUNT_ID } = request;
  const { models = "all", capabilities = CAPABILITIES, limits = NO_LIMITS } = request;
  const choices = checkChoices({ name: request.name, models, capabilities, limits });
  const now = clock.now();
  await requireRoom({ store, clock }, accountId);
  const made = makeKey({
    ...choices,
    accountId,
    createdAtMs: now,
    expiresAtMs: lifetimeMs === undefined ? undefined : now + lifetimeMs,
  });
  await store.insert(made.key);
  return { secret: made.secret, record: made.key.record };
}

/** Makes the first key of a fresh database, which may do everything; undefined when there is one already. */
export async function createFirstKey({ store, clock }: KeyContext): Promise<CreatedKey | undefined> {
  const made = makeKey({
    accountId: DEFAULT_ACCOUNT_ID,
    name: "first key",
    models: "all",
    capabilities: CAPABILITIES,
    limits: NO_LIMITS,
    createdAtMs: clock.now(),
    expiresAtMs: undefined,
  });
  return (await store.insertFirst(made.key)) ? { secret: made.secret, record: made.key.record } : undefined;
}

/**
 * Makes a key with the same name, permissions, limits (what is used of them stays used) and lifetime, and lets the old one expire after the grace, if it would not
 * have before. Throws an `invalid_request` Failure for an unknown key and for one that has ended or been rotated, and, where both
 * would work for a while, for an account that has as many as it may.
 */
export async function rotateKey({ store, clock }: KeyContext, id: string, grace: Grace): Promise<CreatedKey> {
  const old = await findKey(store, id);
  const now = clock.now();
  if (old.replacedBy !== undefined)
    throw invalidField("id", `${id} has been rotated already; its successor is ${old.replacedBy}`);
  if (keyState(old, now) !== "active") throw invalidField("id", `${id} is ${keyState(old, now)}; create a new key`);
  if (GRACES[grace] > 0) await requireRoom({ store, clock }, old.accountId);
  const { accountId, lineId, name, models, capabilities, limits } = old;
  const expiresAtMs = old.expiresAtMs === undefined ? undefined : now + (old.expiresAtMs - old.createdAtMs);
  const made = makeKey({ accountId, lineId, name, models, capabilities, limits, createdAtMs: now, expiresAtMs });
  const oldExpiresAtMs = Math.min(old.expiresAtMs ?? Infinity, now + GRACES[grace]);
  const replaced = await store.replace({ id, expiresAtMs: oldExpiresAtMs, successor: made.key });
  // Somebody else was faster between our two looks at it.
  if (!replaced) throw invalidField("id", `${id} has just been rotated or revoked`);
  return { secret: made.secret, record: made.key.record };
}

/** Ends a key for good, now. Throws an `invalid_request` Failure for an unknown or already revoked one. */
export async function revokeKey({ store, clock }: KeyContext, id: string): Promise<void> {
  if (await store.revoke(id, clock.now())) return;
  await findKey(store, id);
  throw invalidField("id", `${id} has been revoked already`);
}

/**
 * Changes a key's name, permissions or limits; what is not named stays. Throws an `invalid_request` Failure for an unknown
 * or revoked key and for what cannot be.
 */
export async function updateKey({ store }: KeyContext, id: string, changes: KeyChanges): Promise<void> {
  if (await store.update(id, checkChoices(changes))) return;
  await findKey(store, id);
  throw invalidField("id", `${id} has been revoked`);
}

/** Throws an `invalid_request` Failure for an account that has as many keys as it may. Two at the same moment may both be let through. */
async function requireRoom({ store, clock }: KeyContext, accountId: string): Promise<void> {
  const working = (await store.countWorking([accountId], clock.now())).get(accountId) ?? 0;
  if (working < MAX_WORKING_KEYS) return;
  const most = MAX_WORKING_KEYS.toLocaleString("en");
  throw new Failure(
    "invalid_request",
    `This account has ${most} keys that work, which is the most. Revoke some first.`,
  );
}

/** What has become of a key. */
export function keyState(record: KeyRecord, nowMs: number): "active" | "expired" | "revoked" {
  if (record.revokedAtMs !== undefined) return "revoked";
  return record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs ? "expired" : "active";
}

type Choices = Omit<KeyRecord, "id" | "lineId" | "display" | "revokedAtMs" | "replacedBy" | "lastUsedAtMs">;

function makeKey(choices: Choices & { readonly lineId?: string }): { secret: string; key: NewKey } {
  const secret = generateApiKey();
  const id = `key_${randomBase62(16)}`;
  const record: KeyRecord = {
    lineId: id,
    ...choices,
    id,
    display: displayApiKey(secret),
    revokedAtMs: undefined,
    replacedBy: undefined,
    lastUsedAtMs: undefined,
  };
  return { secret, key: { record, hash: hashApiKey(secret) } };
}

async function findKey(store: KeyStore, id: string): Promise<KeyRecord> {
  const record = await store.find(id);
  if (record === undefined) throw unknownId("key", id);
  return record;
}

/** What a key's owner chose, without repetitions. */
function checkChoices<C extends KeyChanges>(choices: C): C {
  const { name, models, capabilities, limits } = choices;
  if (models?.length === 0) throw invalidField("models", "name at least one model, or leave it out for all");
  if (capabilities?.length === 0) throw invalidField("capabilities", "name at least one, or leave it out for all");
  return {
    ...choices,
    ...(name !== undefined && { name: checkName(name) }),
    ...(limits !== undefined && { limits: checkLimits(limits) }),
    ...(Array.isArray(models) && { models: [...new Set(models)] }),
    ...(capabilities !== undefined && { capabilities: [...new Set(capabilities)] }),
  };
}

import type { AttributionLimits } from "../core/attribution.ts";
import type { Clock } from "../core/clock.ts";
import { Failure, invalidField } from "../core/failure.ts";
import { type LabelRequirements, LABELS, valuesProblem } from "../core/labels.ts";
import { type Capability, type Limits, NO_LIMITS } from "../core/principal.ts";
import type { ProviderOption } from "../core/provider-options.ts";
import { displayApiKey, generateApiKey, hashApiKey, randomBase62 } from "./api-key.ts";
import { checkAttributionLimits, checkLimits, checkName, unknownId } from "./checks.ts";
import { DEFAULT_ACCOUNT_ID, type KeyChanges, type KeyRecord, type KeyStore, type NewKey } from "./key-store.ts";
import { CAPABILITIES } from "./principal.ts";

const HOUR_MS = 60 * 60 * 1000;

/** Time that a key may keep working after its rotation, in milliseconds. */
export const GRACES = { "0": 0, "1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS } as const;

export type Grace = keyof typeof GRACES;

/** Grace period of a rotated key unless chosen otherwise. */
export const DEFAULT_GRACE: Grace = "24h";

/** Limit of an account's keys that are neither expired nor revoked. */
export const MAX_WORKING_KEYS = 1000;

/**
 * Limit of the rotations of a key and its predecessors: a transfer moves all of them, on the connection for which completions wait
 * with SQLite.
 */
export const MAX_ROTATIONS = { count: 1_000, days: 30 } as const;

/** Limits of the models that a key names, which processes keep in memory. Keys of earlier versions may have 64 KiB. */
export const MAX_KEY_MODELS = 1_000;
export const MAX_KEY_MODELS_BYTES = 16 * 1024;

/** Role of the actor that makes or changes a key: a developer, or an administrator, whose restrictions bind developers. */
export type KeyActor = "developer" | "administrator";

/** The keys that a revocation ends: the key and its working predecessors, or the key only. */
export type RevocationScope = "with predecessors" | "key only";

/** The store of keys, and the clock. */
export interface KeyContext {
  readonly store: KeyStore;
  readonly clock: Clock;
}

export interface KeyRequest {
  /** 1 to 100 characters without control characters. Need not be unique. */
  readonly name: string;
  /** Default: all, including models added later. */
  readonly models?: readonly string[] | "all" | undefined;
  /** Default: all. */
  readonly capabilities?: readonly Capability[] | undefined;
  /** Default: does not expire. */
  readonly lifetimeMs?: number | undefined;
  /** Default: those of its account. */
  readonly limits?: Limits | undefined;
  /** Default: none. */
  readonly attributionLimits?: AttributionLimits | undefined;
  /** Default: depends on whether a budget applies. */
  readonly options?: readonly ProviderOption[] | "default" | undefined;
  /** Default: none. */
  readonly requiredLabels?: LabelRequirements | undefined;
  /** Default: none. */
  readonly tags?: readonly string[] | undefined;
  /** Default: no. */
  readonly storesContent?: boolean | undefined;
  readonly accountId?: string | undefined;
  /** Default: a developer. */
  readonly by?: KeyActor;
}

/** A new key; its secret is not stored. */
export interface CreatedKey {
  readonly secret: string;
  readonly record: KeyRecord;
}

/**
 * Makes a key, which works at once. Throws an `invalid_request` Failure for an invalid name or list, and for an account with
 * `MAX_WORKING_KEYS` keys.
 */
export async function createKey({ store, clock }: KeyContext, request: KeyRequest): Promise<CreatedKey> {
  const { lifetimeMs, accountId = DEFAULT_ACCOUNT_ID, by = "developer" } = request;
  const { models = "all", capabilities = CAPABILITIES, limits = NO_LIMITS, options = "default" } = request;
  const { attributionLimits, requiredLabels = {}, tags = [], storesContent = false } = request;
  const permissions = { models, capabilities, limits, options, requiredLabels, tags };
  const choices = checkChoices({ name: request.name, ...permissions, attributionLimits });
  const now = clock.now();
  await requireRoom({ store, clock }, accountId);
  const made = makeKey({
    ...choices,
    storesContent,
    limitedByAdministrator: by === "administrator" && (lifetimeMs !== undefined || isRestricted(choices)),
    accountId,
    createdAtMs: now,
    expiresAtMs: lifetimeMs === undefined ? undefined : now + lifetimeMs,
  });
  await store.insert(made.key);
  return { secret: made.secret, record: made.key.record };
}

/** Makes the first key of a fresh database, with all permissions; undefined when there has been one already. */
export async function createFirstKey({ store, clock }: KeyContext): Promise<CreatedKey | undefined> {
  const made = makeKey({
    accountId: DEFAULT_ACCOUNT_ID,
    name: "first key",
    models: "all",
    capabilities: CAPABILITIES,
    limits: NO_LIMITS,
    limitedByAdministrator: false,
    options: "default",
    requiredLabels: {},
    tags: [],
    storesContent: false,
    createdAtMs: clock.now(),
    expiresAtMs: undefined,
  });
  return (await store.insertFirst(made.key)) ? { secret: made.secret, record: made.key.record } : undefined;
}

/**
 * Makes a key with the same name, permissions, lifetime and limits (usage counts on, by the key family), and lets the old
 * one expire after the grace period, if it does not expire earlier. Of a key that an administrator has limited, a developer
 * keeps the end. Throws an `invalid_request` Failure for an unknown,
 * expired, revoked or already rotated key and, with a grace period, for an account with `MAX_WORKING_KEYS` keys;
 * `rate_limited` for a key that was rotated `MAX_ROTATIONS` times.
 */
export async function rotateKey(
  { store, clock }: KeyContext,
  id: string,
  { grace, by = "developer" }: { readonly grace: Grace; readonly by?: KeyActor },
): Promise<CreatedKey> {
  const old = await findKey(store, id);
  const now = clock.now();
  if (old.replacedBy !== undefined)
    throw invalidField("id", `${id} has been rotated already; its successor is ${old.replacedBy}`);
  if (keyState(old, now) !== "active") throw invalidField("id", `${id} is ${keyState(old, now)}; create a new key`);
  if (GRACES[grace] > 0) await requireRoom({ store, clock }, old.accountId);
  await requireFewRotations(store, old, now);
  let made: ReturnType<typeof makeKey> | undefined;
  await store.replace(id, (current) => {
    made = makeSuccessor(current, { now, by });
    return { expiresAtMs: Math.min(current.expiresAtMs ?? Infinity, now + GRACES[grace]), successor: made.key };
  });
  // Another rotation or revocation came between the two queries.
  if (made === undefined) throw invalidField("id", `${id} has just been rotated or revoked`);
  return { secret: made.secret, record: made.key.record };
}

/** Simultaneous requests may pass together. */
async function requireFewRotations(store: KeyStore, { keyFamilyId }: KeyRecord, nowMs: number): Promise<void> {
  const { count, days } = MAX_ROTATIONS;
  if ((await store.countRotations(keyFamilyId, nowMs - days * 24 * HOUR_MS)) < count) return;
  const most = count.toLocaleString("en");
  throw new Failure(
    "rate_limited",
    `This key and those it replaced were rotated ${most} times in ${days} days, which is the maximum. Create a new key, or rotate keys less often.`,
  );
}

function makeSuccessor(
  { createdAtMs, expiresAtMs, ...old }: KeyRecord,
  { now, by }: { readonly now: number; readonly by: KeyActor },
): ReturnType<typeof makeKey> {
  const { limitedByAdministrator } = old;
  const isRenewed = by === "administrator" || !limitedByAdministrator;
  const endMs = expiresAtMs === undefined || !isRenewed ? expiresAtMs : now + (expiresAtMs - createdAtMs);
  return makeKey({ ...old, createdAtMs: now, expiresAtMs: endMs });
}

/**
 * Revokes a key for good and at once, and with it its predecessors that still work in their grace period, unless the scope
 * is `key only`. Answers the IDs of all revoked keys. Throws an `invalid_request` Failure for an unknown or already revoked
 * key.
 */
export async function revokeKey(
  { store, clock }: KeyContext,
  id: string,
  scope: RevocationScope = "with predecessors",
): Promise<readonly string[]> {
  const key = await findKey(store, id);
  if (key.revokedAtMs !== undefined) throw isRevoked(id);
  const now = clock.now();
  const predecessors = scope === "key only" ? [] : await store.workingPredecessors(key, now);
  const revoked = await store.revoke([id, ...predecessors], now);
  if (!revoked.includes(id)) throw isRevoked(id);
  return [id, ...revoked.filter((each) => each !== id)];
}

function isRevoked(id: string): Failure {
  return invalidField("id", `${id} has been revoked already`);
}

/** The fields of a key that people can change; absent ones stay. */
export type KeyUpdate = Omit<KeyChanges, "limitedByAdministrator">;

/**
 * Changes the name, permissions, limits, labels, tags or storage of content of a key, of its predecessors that still work and of its successors; absent fields stay.
 * Throws an `invalid_request` Failure for an unknown or
 * revoked key, for one that has expired after its rotation, and for invalid values, and a `permission_denied` one for a developer who changes more than the name of a key
 * that an administrator has limited.
 */
export async function updateKey(
  { store, clock }: KeyContext,
  id: string,
  { by = "developer", ...update }: KeyUpdate & { readonly by?: KeyActor },
): Promise<void> {
  const choices = checkChoices(update);
  const key = await findKey(store, id);
  const nowMs = clock.now();
  // It does not have the limits of its successor any more, so that it cannot say what the successor keeps.
  if (key.replacedBy !== undefined && keyState(key, nowMs) === "expired")
    throw invalidField("id", `${id} has expired after its rotation; change its successor`);
  const { models, capabilities, limits, attributionLimits, requiredLabels } = choices;
  const isPermission = (models ?? capabilities ?? limits ?? attributionLimits ?? requiredLabels) !== undefined;
  const hasLimitedLife = key.limitedByAdministrator && key.expiresAtMs !== undefined;
  const isLimited = by === "administrator" && (hasLimitedLife || isRestricted({ ...key, ...choices }));
  const changes: KeyChanges = { ...choices, ...(isPermission && { limitedByAdministrator: isLimited }) };
  // Checked by the store in the same statement, so that it holds against a simultaneous change by an administrator.
  const expected = { nowMs, ...(isPermission && by === "developer" && { limitedByAdministrator: false }) };
  if (await store.update(id, changes, expected)) return;
  if ((await findKey(store, id)).revokedAtMs !== undefined) throw invalidField("id", `${id} has been revoked`);
  throw isForAdministrators();
}

/** Throws an `invalid_request` Failure for a key that is to store prompts and answers where `keptMs`, their retention, is not configured. */
export function requireContentStorage(storesContent: boolean, keptMs: number | undefined): boolean {
  if (storesContent && keptMs === undefined)
    throw invalidField(
      "store_content",
      "needs the setting content.store_days, which says how long prompts and answers are kept; ask who operates this installation",
    );
  return storesContent;
}

export function isForAdministrators(): Failure {
  const what = "This key is locked by an administrator";
  return new Failure(
    "permission_denied",
    `${what}: only administrators can change its models, capabilities, limits and required labels.`,
  );
}

/** Whether a key may do less than its account. */
function isRestricted({
  models,
  capabilities,
  limits,
  attributionLimits = {},
  requiredLabels,
}: Pick<KeyRecord, "models" | "capabilities" | "limits" | "attributionLimits" | "requiredLabels">): boolean {
  const isLimited = [limits, attributionLimits].some((each) =>
    Object.values(each).some((limit) => limit !== undefined),
  );
  const lacksOne = CAPABILITIES.some((capability) => !capabilities.includes(capability));
  return models !== "all" || lacksOne || isLimited || Object.keys(requiredLabels).length > 0;
}

/**
 * Throws an `invalid_request` Failure for an account with `MAX_WORKING_KEYS` keys. Two simultaneous requests may both pass.
 */
export async function requireRoom({ store, clock }: KeyContext, accountId: string): Promise<void> {
  const working = (await store.countWorking([accountId], clock.now())).get(accountId) ?? 0;
  if (working < MAX_WORKING_KEYS) return;
  const most = MAX_WORKING_KEYS.toLocaleString("en");
  throw new Failure(
    "invalid_request",
    `This account has reached the maximum of ${most} active keys. Revoke a key first.`,
  );
}

/** State of a key at a time. */
export function keyState(record: KeyRecord, nowMs: number): "active" | "expired" | "revoked" {
  if (record.revokedAtMs !== undefined) return "revoked";
  return record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs ? "expired" : "active";
}

type Choices = Omit<KeyRecord, "id" | "keyFamilyId" | "display" | "revokedAtMs" | "replacedBy" | "lastUsedAtMs">;

function makeKey(choices: Choices & { readonly keyFamilyId?: string }): { secret: string; key: NewKey } {
  const secret = generateApiKey();
  const id = `key_${randomBase62(16)}`;
  const record: KeyRecord = {
    keyFamilyId: id,
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

/** Checks the chosen values and removes repetitions. */
function checkChoices<C extends KeyChanges>(choices: C): C {
  const { name, models, capabilities, limits, attributionLimits, options, requiredLabels, tags } = choices;
  if (capabilities?.length === 0)
    throw invalidField("capabilities", "select at least one, or omit the field for all capabilities");
  return {
    ...choices,
    ...(name !== undefined && { name: checkName(name) }),
    ...(limits !== undefined && { limits: checkLimits(limits) }),
    ...(attributionLimits !== undefined && { attributionLimits: checkAttributionLimits(attributionLimits) }),
    ...(Array.isArray(models) && { models: checkModels(models) }),
    ...(capabilities !== undefined && { capabilities: [...new Set(capabilities)] }),
    ...(Array.isArray(options) && { options: [...new Set(options)] }),
    ...(requiredLabels !== undefined && { requiredLabels: checkRequiredLabels(requiredLabels) }),
    ...(tags !== undefined && { tags: checkValues("tags", tags) }),
  };
}

function checkModels(given: readonly string[]): string[] {
  const models = [...new Set(given)];
  if (models.length === 0) throw invalidField("models", "select at least one model, or omit the field for all models");
  const isTooLong = models.length > MAX_KEY_MODELS || Buffer.byteLength(models.join("")) > MAX_KEY_MODELS_BYTES;
  if (isTooLong) throw invalidField("models", "name at most 1,000 models, together 16 KiB, or allow all models");
  return models;
}

/** Labels without values are not required. */
function checkRequiredLabels(required: LabelRequirements): LabelRequirements {
  const checked = LABELS.map(
    (label) => [label, checkValues(`required_labels.${label}s`, required[label] ?? [])] as const,
  );
  return Object.fromEntries(checked.filter(([, values]) => values.length > 0));
}

function checkValues(field: string, given: readonly string[]): string[] {
  const values = [...new Set(given)];
  const problem = valuesProblem(values);
  if (problem !== undefined) throw invalidField(field, problem);
  return values;
}

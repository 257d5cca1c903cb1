import { Failure, invalidField } from "../core/failure.ts";
import { type Actor } from "./accounts.ts";
import type { AccountRecord, SessionRecord, SignedIn } from "./account-store.ts";
import type { AdminKeyRecord } from "./admin-key-store.ts";
import { displaySecret, hashApiKey, isSecret, newSecret, randomBase62 } from "./api-key.ts";
import type { AuditFields, AuditObject } from "./audit-entry.ts";
import { setFields, toIso } from "./audit-fields.ts";
import { checkName, isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";
import {
  lacks,
  type Permission,
  PERMISSIONS_EVERYWHERE,
  permitsEverywhere,
  permitsSomewhere,
  type Subject,
} from "./permissions.ts";

/** What every administration key begins with. */
export const ADMIN_PREFIX = "sk_parley_admin_";

/** Working keys of an account. */
const MAX_WORKING = 50;
/** Keys of a list. */
const MAX_LISTED = 1_000;
/** Resolution of the last use. */
const TOUCH_MS = 60_000;

type AdminKeyContext = Pick<AccessContext, "store" | "clock" | "log">;

/** A key to make. */
export interface AdminKeyRequest {
  readonly name: string;
  readonly permissions: readonly string[];
  /** Undefined: it does not expire. */
  readonly lifetimeMs: number | undefined;
  /** Account that makes the key, which cannot have permissions beyond the account's. */
  readonly maker: Subject & { readonly account: AccountRecord };
  readonly actor: Actor;
}

/**
 * Makes a key, whose secret is returned once. Throws `invalid_request` for an unknown permission, one that the maker does not have, and
 * beyond 50 working keys of the maker; `unauthenticated` when it was disabled meanwhile.
 */
export async function createAdminKey(
  { store, clock, log }: AdminKeyContext,
  { name, permissions, lifetimeMs, maker, actor }: AdminKeyRequest,
): Promise<{ readonly record: AdminKeyRecord; readonly secret: string }> {
  const secret = newSecret(ADMIN_PREFIX);
  const nowMs = clock.now();
  const record: AdminKeyRecord = {
    id: `akey_${randomBase62(16)}`,
    hash: hashApiKey(secret),
    display: displaySecret(secret, ADMIN_PREFIX),
    name: checkName(name),
    accountId: maker.account.id,
    permissions: readPermissions(permissions, maker),
    createdAtMs: nowMs,
    expiresAtMs: lifetimeMs === undefined ? undefined : nowMs + lifetimeMs,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  };
  const inserted = await store.insertAdminKey(record, MAX_WORKING);
  if (inserted === "disabled") throw new Failure("unauthenticated", "This account is disabled.");
  if (inserted === "full")
    throw new Failure(
      "invalid_request",
      `This account has ${MAX_WORKING} active administration keys. Revoke one that is no longer in use first.`,
    );
  await log.record({ ...entryOf("admin_key_created", record), ...actor, after: setFields(fieldsOf(record)) });
  return { record, secret };
}

/** Reads names of permissions. Throws `invalid_request` for an unknown one, and for one that the holder does not have anywhere. */
export function readPermissions(names: readonly string[], holder: Subject): readonly Permission[] {
  if (names.length === 0) throw invalidField("permissions", "choose at least one");
  const chosen = PERMISSIONS_EVERYWHERE.filter((permission) => names.includes(permission));
  const unknown = names.find((name) => !chosen.some((permission) => permission === name));
  if (unknown !== undefined)
    throw invalidField("permissions", `has an unknown permission; there are ${PERMISSIONS_EVERYWHERE.join(", ")}`);
  const missing = chosen.filter((permission) => !permitsSomewhere(holder, permission));
  if (missing.length > 0) throw invalidField("permissions", `has more than the account itself: ${missing.join(", ")}`);
  return chosen;
}

/** Keys, newest first, at most 1,000; those that ended more than 400 days ago are not kept. */
export function listAdminKeys({ store }: Pick<AccessContext, "store">): Promise<readonly AdminKeyRecord[]> {
  return store.listAdminKeys(MAX_LISTED);
}

/**
 * Ends a key at once. Throws `invalid_request` for an unknown one, and one that is revoked; `permission_denied` for an owner's key, unless `by`
 * is that owner or has `owners.write`. `by` is undefined for the command line.
 */
export async function revokeAdminKey(
  { store, clock, log }: AdminKeyContext,
  { id, by, actor }: { readonly id: string; readonly by?: Subject; readonly actor: Actor },
): Promise<AdminKeyRecord> {
  const accountId = by && isId(id) ? await store.ownerOfAdminKey(id) : undefined;
  if (by !== undefined && accountId !== undefined && accountId !== by.account.id) {
    const isOwners = (await store.find(accountId))?.role === "owner";
    if (isOwners && !permitsEverywhere(by, "owners.write")) throw lacks(by, "owners.write");
  }
  const revoked = isId(id) ? await store.revokeAdminKey(id, clock.now()) : undefined;
  if (revoked === undefined) throw unknownId("administration key in use", id);
  await log.record({ ...revokedAdminKeyEntry(revoked, revoked.revokedAtMs!), ...actor });
  return revoked;
}

/** The entry of a revoked key. */
export function revokedAdminKeyEntry(key: Pick<AdminKeyRecord, "id" | "accountId">, atMs: number) {
  return { ...entryOf("admin_key_revoked", key), before: { revoked_at: null }, after: { revoked_at: toIso(atMs) } };
}

function entryOf<A extends string>(action: A, { id, accountId }: Pick<AdminKeyRecord, "id" | "accountId">) {
  return { action, accountId, object: { kind: "admin_key", id } satisfies AuditObject };
}

function fieldsOf({ name, permissions, expiresAtMs }: AdminKeyRecord): AuditFields {
  return { name, permissions, expires_at: toIso(expiresAtMs) };
}

/** Whether the key does not work any more: `revoked`, `expired`, or `active`. */
export function adminKeyState({ revokedAtMs, expiresAtMs }: AdminKeyRecord, nowMs: number) {
  if (revokedAtMs !== undefined) return "revoked";
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? "expired" : "active";
}

/**
 * Returns the account of a key, restricted to permissions that both have; undefined for a key that is unknown or has ended,
 * and of a disabled account. `counts`: whether the look-up counts as a use of the key.
 */
export async function findAdminCaller(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  secret: string,
  { counts }: { readonly counts: boolean },
): Promise<SignedIn | undefined> {
  if (!isSecret(secret, ADMIN_PREFIX)) return undefined;
  const found = await store.findAdminKey(hashApiKey(secret));
  const nowMs = clock.now();
  if (found === undefined || adminKeyState(found.adminKey, nowMs) !== "active") return undefined;
  if (found.account.disabledAtMs !== undefined) return undefined;
  const { id, lastUsedAtMs = 0 } = found.adminKey;
  if (counts && nowMs - lastUsedAtMs >= TOUCH_MS) await store.touchAdminKey(id, nowMs);
  return { ...found, session: sessionOf(found.adminKey) };
}

/** Substitute session of a key, for limits that are counted by session. */
function sessionOf({ hash, accountId, createdAtMs }: AdminKeyRecord): SessionRecord {
  return {
    hash,
    accountId,
    createdAtMs,
    lastSeenAtMs: createdAtMs,
    authenticatedAtMs: 0,
    method: "link",
    network: undefined,
    browser: undefined,
  };
}

import type { CallerAccount } from "./account-store.ts";
import type { Permission } from "./permissions.ts";

/** A key for administration by programs. All times are Unix milliseconds. */
export interface AdminKeyRecord {
  /** `akey_` and random characters. */
  readonly id: string;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  /** `sk_parley_admin_ab…wxyz`. */
  readonly display: string;
  readonly name: string;
  /** The account that made it: the key allows nothing that this account may not do at that moment. */
  readonly accountId: string;
  readonly permissions: readonly Permission[];
  readonly createdAtMs: number;
  /** Undefined: it does not expire. */
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** To the minute; undefined before its first use. */
  readonly lastUsedAtMs: number | undefined;
}

/** A key with the account that made it. */
interface FoundAdminKey extends CallerAccount {
  readonly adminKey: AdminKeyRecord;
}

/** The store of administration keys. Every method answers, or rejects within a few seconds. */
export interface AdminKeyStore {
  /** `full`: its account has `most` keys that work at its creation. `disabled`: it is disabled, also by a simultaneous change. */
  insertAdminKey(key: AdminKeyRecord, most: number): Promise<"added" | "full" | "disabled">;
  /** Finds a key by its hash, also one that has expired or was revoked. Rejects at once while 2,000 look-ups wait. */
  findAdminKey(hash: string): Promise<FoundAdminKey | undefined>;
  /** The account of a key, also of one that has ended. */
  ownerOfAdminKey(id: string): Promise<string | undefined>;
  /** Newest first, at most `limit`. */
  listAdminKeys(limit: number): Promise<readonly AdminKeyRecord[]>;
  touchAdminKey(id: string, atMs: number): Promise<void>;
  /** Returns the key; undefined for an unknown one, and for one that is revoked already. */
  revokeAdminKey(id: string, atMs: number): Promise<AdminKeyRecord | undefined>;
  /** Removes keys that were revoked or expired before `beforeMs`; answers how many. */
  pruneAdminKeys(beforeMs: number): Promise<number>;
}

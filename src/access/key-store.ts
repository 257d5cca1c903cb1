import type { Capability } from "../core/principal.ts";

/** The account that owns keys as long as there are no others. */
export const DEFAULT_ACCOUNT_ID = "acct_default";

/** What is kept of an API key. All times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** `sk_parley_ab…wxyz`. */
  readonly display: string;
  readonly models: readonly string[] | "all";
  readonly capabilities: readonly Capability[];
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** The key that a rotation made in its place. */
  readonly replacedBy: string | undefined;
}

/** A record together with the hash under which it is found. */
export interface NewKey {
  readonly record: KeyRecord;
  readonly hash: string;
}

/** A rotation: when the old key ends, and the key in its place. */
export interface Replacement {
  readonly id: string;
  readonly expiresAtMs: number;
  readonly successor: NewKey;
}

/**
 * Where keys are kept. Every method answers, or rejects within a few seconds, and what it has answered is durable.
 * The ones that change a key answer false when there is no such key, or it is not in a state to be changed.
 */
export interface KeyStore {
  insert(key: NewKey): Promise<void>;
  /** Every key that was ever made, oldest first. */
  list(): Promise<readonly KeyRecord[]>;
  find(id: string): Promise<KeyRecord | undefined>;
  /** `hash` is the whole hash of `hashApiKey`. */
  findByHash(hash: string): Promise<KeyRecord | undefined>;
  /** Both or nothing; false when the key is revoked or has been replaced already. */
  replace(replacement: Replacement): Promise<boolean>;
  /** False when it was revoked before. */
  revoke(id: string, atMs: number): Promise<boolean>;
  rename(id: string, name: string): Promise<boolean>;
}

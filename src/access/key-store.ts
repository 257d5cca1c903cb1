import type { Capability, Limits } from "../core/principal.ts";
import type { ProviderOption } from "../core/provider-options.ts";

/** The account that owns keys as long as nobody has signed up. The first person to do so takes it over. */
export const DEFAULT_ACCOUNT_ID = "acct_default";

/** What is kept of an API key. All times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  /** The first key of its line: its own ID, or that of the key whose rotations have led to it. */
  readonly keyFamilyId: string;
  readonly accountId: string;
  readonly name: string;
  /** `sk_parley_ab…wxyz`. */
  readonly display: string;
  readonly models: readonly string[] | "all";
  readonly capabilities: readonly Capability[];
  readonly limits: Limits;
  /** An administrator has chosen the models, capabilities or limits, and restricted them: a member cannot change them. */
  readonly limitedByAdministrator: boolean;
  /** What its requests may ask of providers beside tokens; by default everything without a budget, and nothing with one. */
  readonly options: readonly ProviderOption[] | "default";
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** The key that a rotation made in its place. */
  readonly replacedBy: string | undefined;
  /** When its latest completion ended, as the ledger has it. */
  readonly lastUsedAtMs: number | undefined;
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

/** A key and what its account allows. */
export interface FoundKey {
  readonly record: KeyRecord;
  readonly accountLimits: Limits;
  /** A disabled account's keys do not work. */
  readonly accountDisabled: boolean;
}

/** What there is to know of a key for those who let it in. */
export interface KeyGrant extends Omit<FoundKey, "record"> {
  readonly record: Pick<
    KeyRecord,
    | "id"
    | "keyFamilyId"
    | "accountId"
    | "name"
    | "models"
    | "capabilities"
    | "limits"
    | "options"
    | "expiresAtMs"
    | "revokedAtMs"
  >;
}

/** What of a key can be changed while it lives. */
export type KeyChanges = Partial<
  Pick<KeyRecord, "name" | "models" | "capabilities" | "limits" | "options" | "limitedByAdministrator">
>;

/**
 * Where keys are kept. Every method answers, or rejects within a few seconds, and what it has answered is durable.
 * The ones that change a key answer false when there is no such key, or it is not in a state to be changed.
 */
export interface KeyStore {
  insert(key: NewKey): Promise<void>;
  /** Only when there has never been a key: of many processes that start at once, one is told true. */
  insertFirst(key: NewKey): Promise<boolean>;
  /** Every key that was ever made (of one account), oldest first; all of them without a page. */
  list(accountId?: string, page?: Page): Promise<readonly KeyRecord[]>;
  /** How many keys of these accounts are neither expired nor revoked; accounts without any are left out. */
  countWorking(accountIds: readonly string[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  find(id: string): Promise<KeyRecord | undefined>;
  /** A key as `findByHash` finds it, and the hash. */
  findWithHash(id: string): Promise<(FoundKey & Pick<NewKey, "hash">) | undefined>;
  /** What people call these keys, by their IDs; without those that are unknown. */
  names(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** `hash` is the whole hash of `hashApiKey`. */
  findByHash(hash: string): Promise<FoundKey | undefined>;
  /** The same for any number of hashes; without those that no key has. */
  findByHashes(hashes: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /** Both or nothing; false when the key is revoked or has been replaced already. */
  replace(replacement: Replacement): Promise<boolean>;
  /** The keys that rotations made one from the other, by the ID of the first. */
  family(keyFamilyId: string): Promise<readonly KeyRecord[]>;
  /** All or none. Answers which of them were not revoked before. */
  revoke(ids: readonly string[], atMs: number): Promise<readonly string[]>;
  /** False for an unknown or revoked key, and for one that is not as `expected`. */
  update(
    id: string,
    changes: KeyChanges,
    expected?: Partial<Pick<KeyRecord, "limitedByAdministrator">>,
  ): Promise<boolean>;
}

/** Tells of changes that make what caches hold of keys wrong, whichever process made them. */
export interface KeyChangeFeed {
  /**
   * Calls back with the hash of each key that was changed, or with undefined when any may have been. Best effort: what
   * is missed is bounded by the cache's own time to live. Returns what ends it.
   */
  subscribe(changed: (hash: string | undefined) => void): () => void;
}

/** One page of a list that begins with the oldest. */
export interface Page {
  /** How many at most. */
  readonly limit: number;
  /** The last row of the page before; undefined for the first page. */
  readonly after?: { readonly createdAtMs: number; readonly id: string } | undefined;
}

import type { AttributionLimits } from "../core/attribution.ts";
import type { LabelRequirements } from "../core/labels.ts";
import type { AccountRouting, Capability, Limits } from "../core/principal.ts";
import type { ProviderOption } from "../core/provider-options.ts";
import type { Stop } from "../core/stops.ts";

/** Owner of keys until the first person signs up and takes it over. */
export const DEFAULT_ACCOUNT_ID = "acct_default";

/** The stored form of an API key. All times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  /** ID of the first key of the family: its own, or that of the key from which rotations led to it. */
  readonly keyFamilyId: string;
  readonly accountId: string;
  readonly name: string;
  /** `sk_parley_ab…wxyz`. */
  readonly display: string;
  readonly models: readonly string[] | "all";
  readonly capabilities: readonly Capability[];
  readonly limits: Limits;
  /** Limits of each of its end users and sessions. Default: none. */
  readonly attributionLimits?: AttributionLimits | undefined;
  /** Labels that a model must have to be sent its requests; of each at least one value. */
  readonly requiredLabels: LabelRequirements;
  /** Tags of its requests, by which names with several models may choose among them. */
  readonly tags: readonly string[];
  /** Whether prompts and answers of its completions are stored, where the installation stores any. */
  readonly storesContent: boolean;
  /** An administrator has restricted the models, capabilities, limits or labels: a developer cannot change them. */
  readonly limitedByAdministrator: boolean;
  /** Provider options that its requests may use; `default`: all without a budget, none with one. */
  readonly options: readonly ProviderOption[] | "default";
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** The key that replaced it in a rotation. */
  readonly replacedBy: string | undefined;
  /** End of its latest completion in the ledger. */
  readonly lastUsedAtMs: number | undefined;
}

/** A record with the hash by which it is found. */
export interface NewKey {
  readonly record: KeyRecord;
  readonly hash: string;
}

/** A rotation: the new expiry of the old key, and its successor. */
interface Replacement {
  readonly expiresAtMs: number;
  readonly successor: NewKey;
}

/** A key with the facts of its account. */
export interface FoundKey {
  readonly record: KeyRecord;
  readonly accountLimits: Limits;
  /** A disabled account's keys do not work. */
  readonly accountDisabled: boolean;
  /** Its account's credentials and aliases; undefined for none. */
  readonly routing?: AccountRouting | undefined;
  /** Sessions and end users of its account that are stopped; undefined for none. */
  readonly stops?: readonly Stop[] | undefined;
}

/** The facts of a key that authentication and admission need. */
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
    | "attributionLimits"
    | "options"
    | "requiredLabels"
    | "tags"
    | "storesContent"
    | "expiresAtMs"
    | "revokedAtMs"
  >;
}

/** The fields of a key that can be changed. */
export type KeyChanges = Partial<
  Pick<
    KeyRecord,
    | "name"
    | "models"
    | "capabilities"
    | "limits"
    | "attributionLimits"
    | "options"
    | "requiredLabels"
    | "tags"
    | "storesContent"
    | "limitedByAdministrator"
  >
>;

/**
 * Bytes of the lists of a page's keys after which the page ends: its last key may exceed the limit. A key may name 16 KiB of models, one
 * of an earlier version 64 KiB, and a page of 1,000 such keys would hold the event loop for long.
 */
export const PAGE_BYTES = 512 * 1024;

/** Whether a page of `KeyStore.list` was filled, so that another may follow. */
export function mayContinue(page: readonly KeyRecord[], limit: number): boolean {
  return page.length >= limit || page.reduce((bytes, key) => bytes + bytesOf(key), 0) >= PAGE_BYTES;
}

/** Bytes of the lists of a key, at least as many as are stored. */
export function bytesOf({ models, tags, requiredLabels }: KeyRecord): number {
  return Buffer.byteLength(JSON.stringify([models, tags, requiredLabels]));
}

/** Number of keys that a sorted list sorts at most: the latest that were made. No index has most of its orders. */
export const SORTED_KEYS = 20_000;

/** What a list of keys is sorted by: names by code units without regard to the case of ASCII letters, the last use to the minute. */
export type KeyOrder = "created" | "name" | "lastUse" | "spent" | "budget" | "expiry";

/** Position of a key in an order. `value`: what it is sorted by; null for none. */
export interface KeyPosition {
  readonly value: number | string | null;
  readonly createdAtMs: number;
  readonly id: string;
}

/** Order, filter and page of keys. Keys without a value come last; those with the same one in the order of their creation. */
export interface SortedKeysQuery {
  readonly order: KeyOrder;
  readonly isDescending: boolean;
  readonly limit: number;
  /** The last key of the page before. Default: the first page. */
  readonly after?: KeyPosition | undefined;
  /** Owners. Default: all. */
  readonly accountIds?: readonly string[] | undefined;
  /** Whether the keys are neither expired nor revoked, or one of both. Default: any. */
  readonly isWorking?: boolean | undefined;
  /** Each of them is in the name, the beginning and end of the secret, or the owner's name; ASCII letters in either case. */
  readonly words?: readonly string[] | undefined;
  /** A model that the keys may use. Default: any keys. */
  readonly modelId?: string | undefined;
  readonly nowMs: number;
  /** Month of the spending: `2026-11`. */
  readonly month: string;
}

/** One page of sorted keys. */
export interface SortedKeys {
  readonly keys: readonly KeyRecord[];
  /** Where the next page begins; undefined on the last one. */
  readonly next: KeyPosition | undefined;
  /** Where only the latest keys were sorted: when the latest of the others was made. */
  readonly omittedUntilMs: number | undefined;
}

/**
 * The store of keys. Every method answers, or rejects within a few seconds; an answered change is durable. Methods that
 * change a key answer false when there is no such key or its state forbids the change.
 */
export interface KeyStore {
  insert(key: NewKey): Promise<void>;
  /** Inserts only when there has never been a key: of many processes that start at once, one gets true. */
  insertFirst(key: NewKey): Promise<boolean>;
  /**
   * Lists all keys ever made (of these accounts), oldest first; all of them when no page is given. A page has at most its limit, and no
   * further key after `PAGE_BYTES`; `mayContinue` says whether others may follow.
   */
  list(accountIds?: readonly string[], page?: Page): Promise<readonly KeyRecord[]>;
  /** One page of keys in any order, filtered: of the latest `SORTED_KEYS` that were made, with as many bytes as a page of `list`. */
  listSorted(query: SortedKeysQuery): Promise<SortedKeys>;
  /** Counts the keys of these accounts that are neither expired nor revoked; omits accounts without any. */
  countWorking(accountIds: readonly string[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  /** Counts the keys that rotations have made in a family since a time. */
  countRotations(keyFamilyId: string, sinceMs: number): Promise<number>;
  find(id: string): Promise<KeyRecord | undefined>;
  /** A key as found by `findByHash`, with its hash. */
  findWithHash(id: string): Promise<(FoundKey & Pick<NewKey, "hash">) | undefined>;
  /** Names of these keys by ID, with the accounts that own them now; omits unknown ones. */
  names(ids: readonly string[]): Promise<ReadonlyMap<string, Pick<KeyRecord, "name" | "accountId">>>;
  /** `hash` is the whole hash of `hashApiKey`. */
  findByHash(hash: string): Promise<FoundKey | undefined>;
  /** `findByHash` for any number of hashes; omits unknown ones. */
  findByHashes(hashes: readonly string[]): Promise<ReadonlyMap<string, FoundKey>>;
  /**
   * Rotates a key as it is at that moment, so that no simultaneous change is lost. False when it is revoked or has been replaced
   * already. Throws what `rotate` throws.
   */
  replace(id: string, rotate: (old: KeyRecord) => Replacement): Promise<boolean>;
  /**
   * Gives a key and all keys of its family to another account. False when the key is not of the account `from`, and when an administrator
   * has limited it although `limitedByAdministrator` is false.
   */
  transfer(
    id: string,
    accounts: { readonly from: string; readonly to: string; readonly limitedByAdministrator?: false | undefined },
  ): Promise<boolean>;
  /** The keys that rotations replaced on the way to this one, and that are neither expired nor revoked; the latest first. */
  workingPredecessors(
    key: Pick<KeyRecord, "id" | "keyFamilyId" | "createdAtMs">,
    nowMs: number,
  ): Promise<readonly string[]>;
  /** Revokes keys atomically. Answers which of them were not revoked before. */
  revoke(ids: readonly string[], atMs: number): Promise<readonly string[]>;
  /**
   * Changes a key and all keys of its family that are neither revoked nor expired: a predecessor in its grace period, or a successor.
   * Changes no key that does not match `expected`. False, without any change, when the key itself is not changed.
   */
  update(
    id: string,
    changes: KeyChanges,
    expected: Partial<Pick<KeyRecord, "limitedByAdministrator">> & { readonly nowMs: number },
  ): Promise<boolean>;
}

/** Notifies caches of key changes, whichever process made them. */
export interface KeyChangeFeed {
  /**
   * Calls back with the hash of each changed key, or with undefined when any key may have changed. Best effort: a missed
   * change is bounded by the cache's TTL. Returns the function that unsubscribes.
   */
  subscribe(changed: (hash: string | undefined) => void): () => void;
}

/** One page of a list, oldest first. */
export interface Page {
  /** Largest number of rows. */
  readonly limit: number;
  /** The last row of the page before; undefined for the first page. */
  readonly after?: { readonly createdAtMs: number; readonly id: string } | undefined;
}

import type { ActorKind, AuditEntry, ChainLink, ObjectKind, UnchainedEntry } from "./audit-entry.ts";

/** A filter of entries; an absent condition matches all. */
export interface AuditFilter {
  /** Unix milliseconds, inclusive. */
  readonly sinceMs?: number | undefined;
  /** Exclusive. */
  readonly untilMs?: number | undefined;
  readonly action?: string | undefined;
  readonly actorKind?: ActorKind | undefined;
  readonly actorId?: string | undefined;
  readonly objectKind?: ObjectKind | undefined;
  readonly objectId?: string | undefined;
  /** The account that they concern. */
  readonly accountId?: string | undefined;
  readonly result?: UnchainedEntry["result"] | undefined;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Retention of entries. */
export const AUDIT_KEPT_MS = 400 * DAY_MS;
/** Limit of entries, so that changes in a loop cannot fill the disk. */
export const MOST_AUDIT_ENTRIES = 10_000_000;

/** Position of an entry in lists. */
export type AuditPosition = Pick<AuditEntry, "atMs" | "sequence">;

/** Both ends of the stored chain. */
interface ChainEnds {
  /** The last pruned entry, or GENESIS: the first stored entry follows it. */
  readonly anchor: ChainLink;
  /** The latest entry. */
  readonly head: ChainLink;
}

/** Characters of the fields of a page's entries after which the page ends: its last entry may exceed the limit. */
export const PAGE_CHARS = 256 * 1024;

/** Whether a page of `AuditStore.list` was filled, so that another may follow. */
export function mayContinue(page: readonly AuditEntry[], limit: number): boolean {
  return page.length >= limit || page.reduce((chars, entry) => chars + charsOf(entry), 0) >= PAGE_CHARS;
}

function charsOf({ before = "", after = "", details = "" }: AuditEntry): number {
  return before.length + after.length + details.length;
}

/** The store of the audit log. Every method answers, or rejects within a few seconds. */
export interface AuditStore {
  /** Appends an entry to the chain, in the order of the commits of all processes. */
  append(entry: UnchainedEntry): Promise<void>;
  /**
   * Newest first, at most `limit`, and no further one after `PAGE_CHARS`; with `before`, only those that follow it in this order.
   * `mayContinue` says whether others may follow.
   */
  list(
    query: AuditFilter & { readonly limit: number; readonly before?: AuditPosition | undefined },
  ): Promise<readonly AuditEntry[]>;
  /** In the order of the chain after `sequence`, at most `limit`. */
  follow(query: { readonly sequence: number; readonly limit: number }): Promise<readonly AuditEntry[]>;
  ends(): Promise<ChainEnds>;
  /**
   * Removes the oldest entries, at most 1,000 at a time: those before `beforeMs`, and all but the latest `most`. Keeps the
   * last of these: it shows that the entries before it could be removed. The last removed one becomes the anchor. Answers
   * how many.
   */
  prune(limits: { readonly beforeMs: number; readonly most: number }): Promise<number>;
  /** Moves up to 500 security events of releases before the audit log into it; answers how many. */
  takeEvents(): Promise<number>;
}

import type { ActorKind, AuditEntry, ChainLink, ObjectKind, UnchainedEntry } from "./audit-entry.ts";

/** Which entries; absent conditions do not narrow. */
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

/** Position of an entry in lists. */
export type AuditPosition = Pick<AuditEntry, "atMs" | "sequence">;

/** Both ends of the stored chain. */
export interface ChainEnds {
  /** The last pruned entry, or GENESIS: the first stored entry follows it. */
  readonly anchor: ChainLink;
  /** The latest entry. */
  readonly head: ChainLink;
}

/** The store of the audit log. Every method answers, or rejects within a few seconds. */
export interface AuditStore {
  /** Appends an entry to the chain, in the order of the commits of all processes. */
  append(entry: UnchainedEntry): Promise<void>;
  /** Newest first, at most `limit`; with `before`, only those that follow it in this order. */
  list(
    query: AuditFilter & { readonly limit: number; readonly before?: AuditPosition | undefined },
  ): Promise<readonly AuditEntry[]>;
  /** In the order of the chain after `sequence`, at most `limit`. */
  follow(query: { readonly sequence: number; readonly limit: number }): Promise<readonly AuditEntry[]>;
  ends(): Promise<ChainEnds>;
  /**
   * Removes the oldest entries, at most 1,000 at a time: those before `beforeMs`, and all but the latest `most`. The last removed one
   * becomes the anchor. Answers how many.
   */
  prune(limits: { readonly beforeMs: number; readonly most: number }): Promise<number>;
  /** Moves up to 500 security events of programs before the audit log into it; answers how many. */
  takeEvents(): Promise<number>;
}

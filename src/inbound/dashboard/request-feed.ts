import { OverloadFailure } from "../../admission/overload-failure.ts";
import type { Clock } from "../../core/clock.ts";
import { type CompletionRecord, type LedgerEntry, NO_TOKENS, type Recorder } from "../../core/ledger.ts";
import { newCompletionId } from "../calls.ts";
import type { Refusal } from "../services.ts";

/** A request that has ended, with what the ledger does not keep of it. */
export interface EndedRequest {
  readonly entry: LedgerEntry;
  /** Undefined where only the ledger knows the request. */
  readonly keyName: string | undefined;
  /** What the caller was told; empty for one that was served, and where it is not known any more. */
  readonly message: string;
  /** It was not let in: the ledger has no entry of it. */
  readonly refused: boolean;
}

/**
 * The requests of this process as they end, for those who watch, and the latest of those that were refused, of each account: the ledger
 * does not have them, and they are what people look for most.
 */
export class RequestFeed implements Recorder {
  readonly #clock: Clock;
  readonly #refused = new AccountMemory<EndedRequest>();
  readonly #messages = new AccountMemory<string>();
  readonly #watchers = new Set<(ended: EndedRequest) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  record(record: CompletionRecord): void {
    const { completionId, entry, failure, principal } = record;
    const message = failure?.message ?? "";
    if (entry === undefined) {
      const ended = { entry: toEntry(record), keyName: principal.keyName, message, refused: true };
      this.#refused.add(principal.accountId, completionId, ended);
      this.#tell(ended);
    } else {
      if (failure !== undefined) this.#messages.add(principal.accountId, completionId, message);
      if (this.#watchers.size > 0) this.#tell({ entry, keyName: principal.keyName, message, refused: false });
    }
  }

  /** Takes note of a request that was refused before it could be read; of one from nobody known it keeps nothing. */
  refused({ entrance, requestId, failure, principal }: Refusal): void {
    // Those of an overload would leave no room for any other.
    if (principal === undefined || failure instanceof OverloadFailure) return;
    const nowMs = this.#clock.now();
    this.record({
      requestId,
      completionId: newCompletionId(),
      principal,
      entrance,
      requestedModel: "",
      servedModel: undefined,
      streamed: false,
      outcome: failure.code,
      attempts: [],
      startedAtMs: nowMs,
      endedAtMs: nowMs,
      limits: undefined,
      usage: undefined,
      costMicroUsd: undefined,
      durationMs: 0,
      firstContentMs: undefined,
      failure,
      entry: undefined,
    });
  }

  /** Finds a refused one by the completion's ID or the request's, the latest of several, of one account or of any. */
  find(id: string, accountId?: string): EndedRequest | undefined {
    const isInView = ({ entry }: EndedRequest): boolean => (accountId ?? entry.accountId) === entry.accountId;
    const byId = this.#refused.get(id);
    if (byId !== undefined && isInView(byId)) return byId;
    return [...this.#refused.values()].findLast((ended) => ended.entry.requestId === id && isInView(ended));
  }

  /** The refused ones that are still known, the oldest first. */
  refusedOnes(): MapIterator<EndedRequest> {
    return this.#refused.values();
  }

  /** What the caller of a failed completion was told; empty when it is not known any more. */
  messageOf(completionId: string): string {
    return this.#messages.get(completionId) ?? "";
  }

  /** Calls back for each request that ends from now on. Returns what ends it. */
  subscribe(watcher: (ended: EndedRequest) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  #tell(ended: EndedRequest): void {
    for (const watcher of this.#watchers) watcher(ended);
  }
}

/** What the ledger would keep of a request that was let in. */
function toEntry(record: CompletionRecord): LedgerEntry {
  const { principal, requestId, completionId, entrance, requestedModel, streamed, outcome, attempts, limits } = record;
  const { startedAtMs, endedAtMs, durationMs } = record;
  return {
    completionId,
    requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    entrance,
    startedAtMs,
    endedAtMs,
    requestedModel: requestedModel.slice(0, MAX_MODEL_CHARS).toWellFormed(),
    servedModel: undefined,
    streamed,
    outcome,
    attempts,
    tokens: NO_TOKENS,
    costMicroUsd: 0,
    durationMs,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits,
  };
}

/** Nobody has checked what a refused request asked for. */
const MAX_MODEL_CHARS = 256;

/** How many values are kept for one account. */
const MAX_PER_ACCOUNT = 200;

/** How many values are kept for all accounts together. */
const MAX_TOTAL = 5_000;

/**
 * The latest values of each account, by ID. What is too much goes from the account that has most, the oldest first: an
 * account's values are never displaced by one that has fewer.
 */
export class AccountMemory<T> {
  readonly #values = new Map<string, T>();
  /** The IDs of each account's values, the oldest first. */
  readonly #ids = new Map<string, Set<string>>();

  /** Keeps a value; `id` must be new. */
  add(accountId: string, id: string, value: T): void {
    const own = this.#ids.get(accountId) ?? new Set();
    this.#ids.set(accountId, own);
    own.add(id);
    this.#values.set(id, value);
    if (own.size > MAX_PER_ACCOUNT) this.#forgetOldest(accountId);
    if (this.#values.size > MAX_TOTAL) this.#forgetOldest(this.#largest());
  }

  get(id: string): T | undefined {
    return this.#values.get(id);
  }

  /** All values, the oldest first. */
  values(): MapIterator<T> {
    return this.#values.values();
  }

  #largest(): string {
    let largest = "";
    let most = 0;
    for (const [accountId, { size }] of this.#ids) {
      if (size <= most) continue;
      most = size;
      largest = accountId;
    }
    return largest;
  }

  #forgetOldest(accountId: string): void {
    const own = this.#ids.get(accountId)!;
    const [oldest] = own;
    own.delete(oldest!);
    if (own.size === 0) this.#ids.delete(accountId);
    this.#values.delete(oldest!);
  }
}

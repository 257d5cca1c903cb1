import type { CompletionRecord, LedgerEntry, Recorder } from "../../core/ledger.ts";
import { messageOf, toRefusedEntry } from "../refused-request.ts";

/** A request that has ended, with facts that the ledger does not store. */
export interface EndedRequest {
  readonly entry: LedgerEntry;
  /** Undefined for a request of another process. */
  readonly keyName: string | undefined;
  /** Error message sent to the caller; empty when served, and of failed ones when no longer known. */
  readonly message: string;
  /** It was refused: the ledger has no entry. */
  readonly refused: boolean;
}

/**
 * Requests of this process as they end, for live pages, and the latest refused ones of each account, of which the database has
 * samples only.
 */
export class RequestFeed implements Recorder {
  readonly #refused = new AccountMemory<EndedRequest>();
  readonly #messages = new AccountMemory<string>();
  readonly #watchers = new Set<(ended: EndedRequest) => void>();

  record(record: CompletionRecord): void {
    const { completionId, entry, failure, principal } = record;
    const message = messageOf(record);
    if (entry === undefined) {
      const ended = { entry: toRefusedEntry(record), keyName: principal.keyName, message, refused: true };
      this.#refused.add(principal.accountId, completionId, ended);
      this.#tell(ended);
    } else {
      if (failure !== undefined) this.#messages.add(principal.accountId, completionId, message);
      if (this.#watchers.size > 0) this.#tell({ entry, keyName: principal.keyName, message, refused: false });
    }
  }

  /** Finds the latest refused request by completion ID or request ID, of these accounts or of any. */
  find(id: string, accountIds?: readonly string[]): EndedRequest | undefined {
    const isInView = ({ entry }: EndedRequest): boolean => accountIds?.includes(entry.accountId) !== false;
    const byId = this.#refused.get(id);
    if (byId !== undefined && isInView(byId)) return byId;
    return [...this.#refused.values()].findLast((ended) => ended.entry.requestId === id && isInView(ended));
  }

  /** Known refused requests, oldest first. */
  refusedOnes(): MapIterator<EndedRequest> {
    return this.#refused.values();
  }

  /** Error message of a failed completion; empty when no longer known. */
  messageOf(completionId: string): string {
    return this.#messages.get(completionId) ?? "";
  }

  /** Calls back for each request that ends. Returns the function that stops it. */
  subscribe(watcher: (ended: EndedRequest) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  #tell(ended: EndedRequest): void {
    for (const watcher of this.#watchers) watcher(ended);
  }
}

/** Limit of values per account. */
const MAX_PER_ACCOUNT = 200;

/** Limit of values in total. */
const MAX_TOTAL = 5_000;

/**
 * The latest values of each account, by ID. At the limit the oldest value of the account with the most values is dropped: an
 * account with fewer never loses values to it.
 */
export class AccountMemory<T> {
  readonly #values = new Map<string, T>();
  /** IDs of each account's values, oldest first. */
  readonly #ids = new Map<string, Set<string>>();

  /** Adds a value; `id` must be new. */
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

  /** All values, oldest first. */
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

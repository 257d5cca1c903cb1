import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Ledger, NewLedgerEntry } from "../core/ledger.ts";
import { BegunCompletions } from "./begun-completions.ts";
import type { LedgerStore } from "./ledger-store.ts";

/** Entries of a batch at most. */
const MAX_BATCH = 500;
/** Entries that may wait for an unavailable database before requests are refused. */
export const MAX_WAITING = 10_000;
/** Pause after a failed write. */
const RETRY_MS = 1_000;

export interface LedgerOptions {
  readonly store: Pick<LedgerStore, "insert" | "begin">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Called when the database becomes unavailable, again when the cause is of the other kind, and with undefined when it is available. */
  readonly onTrouble: (trouble: { readonly cause: unknown; readonly waiting: number } | undefined) => void;
  /** Whether a failed write means that the disk takes none: waiting entries may then have no place at the end of the process. */
  readonly isUnwritable: (cause: unknown) => boolean;
}

export interface LedgerState {
  /** Number of unwritten entries. */
  readonly waiting: number;
  /** Whether the database is unavailable. */
  readonly away: boolean;
  /** Whether that is because its disk is full, read-only or broken: no completion is admitted. */
  readonly unwritable: boolean;
}

/** Core's ledger with the methods of its owner. */
export interface OwnedLedger extends Ledger {
  state(): LedgerState;
  /** How long the oldest unwritten entry has waited, in milliseconds; 0 without one. */
  lagMs(): number;
  /** Tries once more to write the waiting entries. Returns those that were not written. Nothing may be appended after it. */
  close(): Promise<readonly NewLedgerEntry[]>;
}

interface Waiting {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
}

/**
 * Writes entries in batches: while one batch is written the next one collects. Under load many entries share the cost of a durable
 * commit, and none waits for more than two.
 */
export function createLedger(options: LedgerOptions): OwnedLedger {
  return new BatchingLedger(options);
}

class BatchingLedger implements OwnedLedger {
  readonly #options: LedgerOptions;
  readonly #begun: BegunCompletions;
  /** In the order of their ends; those of the current batch stay at the front until they are written. */
  readonly #waiting: Waiting[] = [];
  #writing: Promise<boolean> | undefined;
  #away = false;
  #unwritable = false;
  #closed = false;
  #cancelRetry = (): void => undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#begun = new BegunCompletions(options);
  }

  begin(entry: NewLedgerEntry): Promise<void> {
    return this.#begun.begin(entry);
  }

  async append(entry: NewLedgerEntry): Promise<void> {
    const noting = this.#begun.end(entry.completionId);
    const sinceMs = this.#options.clock.monotonic();
    const written = new Promise<void>((resolve) => this.#waiting.push({ entry, sinceMs, resolve }));
    // While the database is unavailable, the next attempt is scheduled already, and callers do not wait.
    if (this.#away) return;
    if (noting !== undefined) await noting;
    void this.#write();
    await written;
  }

  admit(): void {
    if (!this.#unwritable && this.#waiting.length < MAX_WAITING) return;
    const message = "Completions cannot be written down at the moment. Try again shortly.";
    throw new Failure("overloaded", message, { retryAfterMs: RETRY_MS, unavailable: "ledger" });
  }

  state(): LedgerState {
    return { waiting: this.#waiting.length, away: this.#away, unwritable: this.#unwritable };
  }

  lagMs(): number {
    const nowMs = this.#options.clock.monotonic();
    return nowMs - (this.#waiting[0]?.sinceMs ?? nowMs);
  }

  async close(): Promise<readonly NewLedgerEntry[]> {
    this.#closed = true;
    this.#cancelRetry();
    this.#begun.close();
    await this.#writing;
    while (this.#waiting.length > 0 && (await this.#writeBatch()));
    return this.#waiting.map(({ entry }) => entry);
  }

  /** Writes batches until none waits, or the database is unavailable. */
  async #write(): Promise<void> {
    if (this.#writing !== undefined) return;
    while (this.#waiting.length > 0 && !this.#closed) {
      this.#writing = this.#writeBatch();
      const isWritten = await this.#writing;
      if (!isWritten) break;
    }
    this.#writing = undefined;
    if (this.#away && !this.#closed) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => void this.#write());
  }

  async #writeBatch(): Promise<boolean> {
    // Completions that end in the same event loop turn are written together.
    await nextTurn();
    const batch = this.#waiting.slice(0, MAX_BATCH);
    try {
      await this.#options.store.insert(batch.map(({ entry }) => entry));
    } catch (cause) {
      const unwritable = this.#options.isUnwritable(cause);
      if (!this.#away || unwritable !== this.#unwritable)
        this.#options.onTrouble({ cause, waiting: this.#waiting.length });
      this.#away = true;
      this.#unwritable = unwritable;
      for (const { resolve } of this.#waiting) resolve();
      return false;
    }
    this.#waiting.splice(0, batch.length);
    for (const { resolve } of batch) resolve();
    if (this.#away) this.#options.onTrouble(undefined);
    this.#away = false;
    this.#unwritable = false;
    return true;
  }
}

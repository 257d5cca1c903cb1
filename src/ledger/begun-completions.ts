import type { Clock } from "../core/clock.ts";
import type { NewLedgerEntry } from "../core/ledger.ts";
import { gather } from "./gather.ts";
import type { LedgerStore } from "./ledger-store.ts";

/** Notes of a batch at most. */
const MAX_BATCH = 500;
/** Pause after a failed write. */
const RETRY_MS = 1_000;

interface Unnoted {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
  /** The last statement that had this note. */
  statement?: Promise<unknown>;
}

export interface BegunCompletionsOptions {
  readonly store: Pick<LedgerStore, "begin">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Age of the oldest note at which it is written, with all others: a shorter completion is never noted. Default: 0, at once. */
  readonly intervalMs?: number;
}

/**
 * Notes the completions of this process in the database, many at a time. While that is unavailable nobody waits, and those
 * that are still in flight are noted when it is back.
 */
export class BegunCompletions {
  readonly #options: BegunCompletionsOptions;
  readonly #unnoted = new Map<string, Unnoted>();
  #isNoting = false;
  #away = false;
  #closed = false;
  #cancelRetry = (): void => undefined;

  constructor(options: BegunCompletionsOptions) {
    this.#options = options;
  }

  /** Resolves when the completion is noted, or when that failed. */
  begin(entry: NewLedgerEntry): Promise<void> {
    const sinceMs = this.#options.clock.monotonic();
    const noted = new Promise<void>((resolve) => this.#unnoted.set(entry.completionId, { entry, sinceMs, resolve }));
    if (this.#away) return Promise.resolve();
    void this.#note();
    return noted;
  }

  /**
   * To be called before the entry of a completion is written. Returns the statement that may note it at this moment: a note
   * that is stored after the entry remains in the database until this process has ended. Nothing else comes of it, so nobody
   * waits while the database is unavailable.
   */
  end(id: string): Promise<unknown> | undefined {
    const unnoted = this.#unnoted.get(id);
    if (unnoted === undefined) return undefined;
    this.#unnoted.delete(id);
    unnoted.resolve();
    return this.#away ? undefined : unnoted.statement;
  }

  close(): void {
    this.#closed = true;
    this.#cancelRetry();
  }

  async #note(): Promise<void> {
    if (this.#isNoting) return;
    this.#isNoting = true;
    const { clock, intervalMs = 0 } = this.#options;
    for (let [oldest] = this.#unnoted.values(); oldest !== undefined; [oldest] = this.#unnoted.values()) {
      await gather(oldest, { clock, intervalMs });
      if (this.#closed) break;
      // It has ended meanwhile.
      if (!this.#unnoted.has(oldest.entry.completionId)) continue;
      const batch = [...this.#unnoted.values()].slice(0, MAX_BATCH);
      const statement = this.#write(batch);
      for (const unnoted of batch) unnoted.statement = statement;
      this.#away = !(await statement);
      if (this.#away) break;
    }
    this.#isNoting = false;
    if (this.#away && !this.#closed) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => void this.#note());
  }

  /** Notes a batch, and answers whether that succeeded. */
  async #write(batch: readonly Unnoted[]): Promise<boolean> {
    const { store, process } = this.#options;
    try {
      await store.begin(
        batch.map(({ entry }) => entry),
        process,
      );
    } catch {
      for (const { resolve } of this.#unnoted.values()) resolve();
      return false;
    }
    for (const { entry, resolve } of batch) {
      this.#unnoted.delete(entry.completionId);
      resolve();
    }
    return true;
  }
}

import type { Clock } from "../core/clock.ts";
import type { NewLedgerEntry } from "../core/ledger.ts";
import { gather } from "./gather.ts";
import { type LedgerStore, MAX_NOTED, type Note } from "./ledger-store.ts";

/** Pause after a failed write. */
const RETRY_MS = 1_000;
/** Delay after which notes that are done are removed, unless a new note comes before. */
const REMOVE_AFTER_MS = 1_000;

interface Unnoted {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
}

/** A row of the database. */
interface Noted {
  readonly id: string;
  /** Completions without an entry. */
  left: number;
  isStored: boolean;
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
 * Notes the completions of this process in the database, many in one row, and removes the row when all of them have entries.
 * While the database is unavailable nobody waits, and those that are still in flight are noted when it is back.
 */
export class BegunCompletions {
  readonly #options: BegunCompletionsOptions;
  readonly #unnoted = new Map<string, Unnoted>();
  /** By completion. */
  readonly #noted = new Map<string, Noted>();
  /** IDs of notes to remove. */
  #done: string[] = [];
  #lastNote = 0;
  #isWriting = false;
  #away = false;
  #closed = false;
  #cancelRetry = (): void => undefined;
  #cancelRemoval: (() => void) | undefined;

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

  /** To be called when a completion has ended: it need no longer be noted. */
  end(id: string): void {
    this.#unnoted.get(id)?.resolve();
    this.#unnoted.delete(id);
  }

  /** To be called when the database has the entries of these completions, whose notes can then be removed. */
  entered(ids: readonly string[]): void {
    for (const id of ids) {
      const note = this.#noted.get(id);
      if (note === undefined) continue;
      this.#noted.delete(id);
      note.left -= 1;
      this.#removeIfDone(note);
    }
  }

  /** Removes the notes that are done. To be called after the last entry. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry();
    this.#cancelRemoval?.();
    if (this.#done.length > 0 && !this.#away) await this.#store(undefined);
  }

  #removeIfDone(note: Noted): void {
    if (!note.isStored || note.left > 0) return;
    this.#done.push(note.id);
    this.#cancelRemoval ??= this.#options.clock.after(REMOVE_AFTER_MS, () => {
      this.#cancelRemoval = undefined;
      // A note that is being written takes them along, or the next one.
      if (this.#done.length > 0 && !this.#isWriting && !this.#away && !this.#closed) void this.#store(undefined);
    });
  }

  async #note(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    const { clock, intervalMs = 0 } = this.#options;
    for (let [oldest] = this.#unnoted.values(); oldest !== undefined; [oldest] = this.#unnoted.values()) {
      await gather(oldest, { clock, intervalMs });
      if (this.#closed) break;
      // It has ended meanwhile.
      if (!this.#unnoted.has(oldest.entry.completionId)) continue;
      this.#away = !(await this.#write([...this.#unnoted.values()].slice(0, MAX_NOTED)));
      if (this.#away) break;
    }
    this.#isWriting = false;
    if (this.#away && !this.#closed) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => void this.#note());
  }

  /** Notes a batch, and answers whether that succeeded. */
  async #write(batch: readonly Unnoted[]): Promise<boolean> {
    const { process } = this.#options;
    const noted: Noted = { id: `${process}/${++this.#lastNote}`, left: batch.length, isStored: false };
    // Their entries may be written before the note is stored.
    for (const { entry } of batch) this.#noted.set(entry.completionId, noted);
    if (!(await this.#store({ id: noted.id, process, entries: batch.map(({ entry }) => entry) }))) {
      // It may have been stored all the same.
      this.#done.push(noted.id);
      for (const { resolve } of this.#unnoted.values()) resolve();
      return false;
    }
    for (const { entry, resolve } of batch) {
      this.#unnoted.delete(entry.completionId);
      resolve();
    }
    noted.isStored = true;
    this.#removeIfDone(noted);
    return true;
  }

  /** Stores a note, removes those that are done, and answers whether that succeeded. */
  async #store(note: Note | undefined): Promise<boolean> {
    const done = this.#done;
    this.#done = [];
    try {
      await this.#options.store.begin(note, done);
    } catch {
      this.#done.push(...done);
      return false;
    }
    return true;
  }
}

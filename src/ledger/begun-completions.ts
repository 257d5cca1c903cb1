import type { Clock } from "../core/clock.ts";
import type { NewLedgerEntry } from "../core/ledger.ts";
import { gather } from "./gather.ts";
import { type LedgerStore, MAX_NOTED, type Note } from "./ledger-store.ts";

/** Pause after a failed write. */
const RETRY_MS = 1_000;
/** Delay before completed notes are removed, unless a new note is written earlier and removes them. */
const REMOVE_AFTER_MS = 1_000;

interface Unnoted {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
}

/** A note: one row of the database for several completions. */
interface Noted {
  readonly id: string;
  /** Number of its completions that have no entry yet. */
  left: number;
  isStored: boolean;
}

export interface BegunCompletionsOptions {
  readonly store: Pick<LedgerStore, "begin">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Age of the oldest unwritten note at which all are written. A shorter completion is never noted. Default: 0, at once. */
  readonly intervalMs?: number;
}

/**
 * Notes the completions of this process in the database, many in one row, and removes the row when all of them have entries.
 * While the database is unavailable no completion waits for its note; completions still in flight are noted when it is available
 * again.
 */
export class BegunCompletions {
  readonly #options: BegunCompletionsOptions;
  readonly #unnoted = new Map<string, Unnoted>();
  /** Notes by completion ID. */
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

  /** Notes a completion. Resolves when the note is stored, or when that failed. */
  begin(entry: NewLedgerEntry): Promise<void> {
    const sinceMs = this.#options.clock.monotonic();
    const noted = new Promise<void>((resolve) => this.#unnoted.set(entry.completionId, { entry, sinceMs, resolve }));
    if (this.#away) return Promise.resolve();
    void this.#note();
    return noted;
  }

  /** Call it when a completion has ended, so that it need not be noted any more. */
  end(id: string): void {
    this.#unnoted.get(id)?.resolve();
    this.#unnoted.delete(id);
  }

  /** Call it when the database has the entries of these completions. Removes notes whose completions all have entries. */
  entered(ids: readonly string[]): void {
    for (const id of ids) {
      const note = this.#noted.get(id);
      if (note === undefined) continue;
      this.#noted.delete(id);
      note.left -= 1;
      this.#removeIfDone(note);
    }
  }

  /** Removes completed notes. Call it after the last entry. Never rejects. */
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
      // While a note is being written, the next write removes them.
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
      // The completion has ended in the meantime.
      if (!this.#unnoted.has(oldest.entry.completionId)) continue;
      this.#away = !(await this.#write([...this.#unnoted.values()].slice(0, MAX_NOTED)));
      if (this.#away) break;
    }
    this.#isWriting = false;
    if (this.#away && !this.#closed) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => void this.#note());
  }

  /** Notes a batch. Resolves with whether that succeeded. */
  async #write(batch: readonly Unnoted[]): Promise<boolean> {
    const { process } = this.#options;
    const noted: Noted = { id: `${process}/${++this.#lastNote}`, left: batch.length, isStored: false };
    // Set before the write, because their entries may be written before the note is stored.
    for (const { entry } of batch) this.#noted.set(entry.completionId, noted);
    if (!(await this.#store({ id: noted.id, process, entries: batch.map(({ entry }) => entry) }))) {
      // The note may have been stored although the call failed, so it is removed later.
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

  /** Stores a note and removes completed ones. Resolves with whether that succeeded. */
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

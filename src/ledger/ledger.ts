import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Ledger, NewLedgerEntry } from "../core/ledger.ts";
import { BegunCompletions } from "./begun-completions.ts";
import type { EntryFiles } from "./entry-files.ts";
import { gather } from "./gather.ts";
import type { LedgerStore } from "./ledger-store.ts";

/** Entries of a batch at most. */
const MAX_BATCH = 500;
/** Entries that may wait for a slow database in memory before requests are refused. */
export const MAX_WAITING = 10_000;
/** Pause after a failed write. */
const RETRY_MS = 1_000;
/** Limit for callers' wait for the data directory. */
const FILE_LIMIT_MS = 2_000;

/** Whether a promise is fulfilled. */
const SUCCESS = [() => true, () => false] as const;

/** What does not take entries, and why. */
export interface LedgerTrouble {
  readonly of: "database" | "files";
  readonly cause: unknown;
}

export interface LedgerOptions {
  readonly store: Pick<LedgerStore, "insert" | "begin" | "flush">;
  /** Takes entries while the database does not. */
  readonly files: Pick<EntryFiles, "append" | "recover" | "left" | "close">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Age of the oldest entry or note at which it is written, with all others, in milliseconds. Default: 0, at once. */
  readonly intervalMs?: number;
  /** Whether the database is unavailable from the start. Default: it is not. */
  readonly isAway?: boolean;
  /** Called when the database becomes unavailable, or the files besides; with undefined when the database is available again. */
  readonly onTrouble: (trouble: LedgerTrouble | undefined) => void;
}

export interface LedgerState {
  /** Number of entries of this process that the database does not have. */
  readonly waiting: number;
  /** Whether the database is unavailable. */
  readonly away: boolean;
  /** Whether files do not take entries either, such as on a full disk: no completion is admitted. */
  readonly unwritable: boolean;
}

/** Core's ledger with the methods of its owner. */
export interface OwnedLedger extends Ledger {
  begin(entry: NewLedgerEntry): Promise<void>;
  append(entry: NewLedgerEntry): Promise<void>;
  state(): LedgerState;
  /** Whether the database is available and has all entries that had to wait for it. */
  isBooked(): boolean;
  /** How long the oldest of them has waited, in milliseconds; 0 without one. */
  lagMs(): number;
  /** Tries once more to write the waiting entries, then writes them into files. Nothing may be appended after it. */
  close(): Promise<LedgerRest>;
}

/** What the database does not have at the end of a process. */
export interface LedgerRest {
  /** Number of entries in files. */
  readonly filed: number;
  /** Entries that files have not taken. */
  readonly left: readonly NewLedgerEntry[];
}

interface Waiting {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
  /** Whether its caller no longer waits for it. */
  isLetGo: boolean;
}

const idOf = ({ entry }: Waiting): string => entry.completionId;

/**
 * Writes entries in batches: while one batch is written the next one collects. Under load many entries share the cost of a durable
 * commit, and none waits for more than two, and the interval. While the database is unavailable, batches go into files of the data
 * directory, and from there into the database when it is back, also by the next process.
 */
export function createLedger(options: LedgerOptions): OwnedLedger {
  return new BatchingLedger(options);
}

class BatchingLedger implements OwnedLedger {
  readonly #options: LedgerOptions;
  readonly #begun: BegunCompletions;
  /** In the order of their ends; those of the current batch stay at the front until they are written. */
  #waiting: Waiting[] = [];
  /** Entries in files, and since when there are some. */
  readonly #filed = { count: 0, sinceMs: 0 };
  /** Completions of this process whose entries went into files since the database had all. */
  readonly #filedIds: string[] = [];
  #writing: Promise<boolean> | undefined;
  #recovering: Promise<void> | undefined;
  #away: boolean;
  /** Whether the entries of all files were written since the database was unavailable. */
  #isRecovered: boolean;
  /** Whether the files do not take entries either. */
  #isUnfiled = false;
  #closed = false;
  #cancelRetry = (): void => undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#begun = new BegunCompletions(options);
    this.#away = options.isAway === true;
    this.#isRecovered = !this.#away;
    if (this.#away) this.#recoverLater();
  }

  begin(entry: NewLedgerEntry): Promise<void> {
    return this.#begun.begin(entry);
  }

  async append(entry: NewLedgerEntry): Promise<void> {
    this.#begun.end(entry.completionId);
    const sinceMs = this.#options.clock.monotonic();
    const written = new Promise<void>((resolve) => {
      this.#waiting.push({ entry, sinceMs, resolve, isLetGo: false });
    });
    void this.#write();
    await written;
  }

  admit(): void {
    if (!this.#unwritable && this.#waiting.length < MAX_WAITING) return;
    const message = "Completions cannot be written down at the moment. Try again shortly.";
    throw new Failure("overloaded", message, { retryAfterMs: RETRY_MS, unavailable: "ledger" });
  }

  state(): LedgerState {
    return { waiting: this.#waiting.length + this.#filed.count, away: this.#away, unwritable: this.#unwritable };
  }

  get #unwritable(): boolean {
    return this.#away && this.#isUnfiled;
  }

  isBooked(): boolean {
    return this.#isRecovered && this.#filed.count === 0 && !this.#waiting.some(({ isLetGo }) => isLetGo);
  }

  lagMs(): number {
    const nowMs = this.#options.clock.monotonic();
    const filedMs = this.#filed.count > 0 ? nowMs - this.#filed.sinceMs : 0;
    return Math.max(nowMs - (this.#waiting[0]?.sinceMs ?? nowMs), filedMs);
  }

  async close(): Promise<LedgerRest> {
    this.#closed = true;
    this.#cancelRetry();
    await this.#writing;
    await this.#recovering;
    if (this.#away && (await this.#recover().then(...SUCCESS))) {
      this.#away = false;
      this.#noteRecovered();
    }
    while (!this.#away && this.#waiting.length > 0) await this.#writeBatch();
    const waiting = this.#waiting.map(({ entry }) => entry);
    const isFiled = waiting.length === 0 || (await this.#options.files.append(waiting).then(...SUCCESS));
    await Promise.all([this.#options.files.close(), this.#begun.close()]);
    return { filed: this.#filed.count + (isFiled ? waiting.length : 0), left: isFiled ? [] : waiting };
  }

  /** Writes batches until none waits, or neither the database nor a file takes them. */
  async #write(): Promise<void> {
    if (this.#writing !== undefined) return;
    while (this.#waiting.length > 0 && !this.#closed) {
      this.#writing = this.#away ? this.#fileBatch() : this.#writeBatch();
      const goesOn = await this.#writing;
      if (!goesOn) break;
    }
    this.#writing = undefined;
  }

  /** Writes a batch into the database. Answers whether others can be written somewhere, which is so when it is unavailable too. */
  async #writeBatch(): Promise<boolean> {
    await this.#gather();
    const batch = this.#waiting.slice(0, MAX_BATCH);
    try {
      await this.#options.store.insert(batch.map(({ entry }) => entry));
    } catch (cause) {
      this.#noteAway(cause);
      return true;
    }
    this.#begun.entered(batch.map(idOf));
    this.#remove(batch);
    return true;
  }

  /** Writes a batch into a file. Answers whether it took it; otherwise the entries wait, and their callers do not. */
  async #fileBatch(): Promise<boolean> {
    await this.#gather();
    const { clock, files } = this.#options;
    const batch = this.#waiting.slice(0, MAX_BATCH);
    const letGo = (): void => {
      for (const one of this.#waiting) {
        one.isLetGo = true;
        one.resolve();
      }
    };
    const cancelLimit = clock.after(FILE_LIMIT_MS, letGo);
    try {
      await files.append(batch.map(({ entry }) => entry));
    } catch (cause) {
      letGo();
      if (!this.#isUnfiled) this.#options.onTrouble({ of: "files", cause });
      this.#isUnfiled = true;
      return false;
    } finally {
      cancelLimit();
    }
    this.#isUnfiled = false;
    if (this.#filed.count === 0) this.#filed.sinceMs = batch[0]!.sinceMs;
    this.#filed.count += batch.length;
    this.#filedIds.push(...batch.map(idOf));
    this.#remove(batch);
    return true;
  }

  #gather(): Promise<void> {
    const { clock, intervalMs = 0 } = this.#options;
    return gather(this.#waiting[0]!, { clock, intervalMs: this.#closed ? 0 : intervalMs });
  }

  #remove(batch: readonly Waiting[]): void {
    // A recovery and a file may have taken some of the same entries.
    const taken = new Set(batch);
    this.#waiting = this.#waiting.filter((one) => !taken.has(one));
    for (const { resolve } of batch) resolve();
  }

  #noteAway(cause: unknown): void {
    if (!this.#away) this.#options.onTrouble({ of: "database", cause });
    this.#away = true;
    this.#isRecovered = false;
    this.#recoverLater();
  }

  #recoverLater(): void {
    if (this.#closed) return;
    this.#cancelRetry();
    this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => {
      this.#recovering = this.#returnAfter(this.#recovering).catch((cause: unknown) => {
        this.#noteAway(cause);
        // Files may take them again before the database does.
        void this.#write();
      });
    });
  }

  /**
   * Writes what has waited into the database, and new entries too from then on. Rejects while it is unavailable. `earlier` is the return
   * before, which may still run when the database became unavailable again meanwhile.
   */
  async #returnAfter(earlier: Promise<void> | undefined): Promise<void> {
    await earlier;
    await this.#recover();
    if (this.#away) this.#options.onTrouble(undefined);
    this.#away = false;
    // Its batch may go into a file.
    await this.#writing;
    await this.#recover();
    // Otherwise batches may have gone into files since.
    if (!this.#away) this.#noteRecovered();
    void this.#write();
  }

  /** Notes that the database has the entries of all files, but for those that had to be left. */
  #noteRecovered(): void {
    this.#isRecovered = true;
    // Other processes may have written some.
    if (this.#options.files.left > 0) return;
    this.#filed.count = 0;
    this.#begun.entered(this.#filedIds.splice(0));
  }

  /** Writes the entries of files, or without any a batch of those that wait. Rejects while the database is unavailable. */
  async #recover(): Promise<void> {
    const { store, files } = this.#options;
    const recovered = await files.recover(store, (count) => {
      this.#filed.count = Math.max(this.#filed.count - count, 0);
    });
    if (recovered > 0) return;
    if (!this.#isUnfiled) return store.flush();
    const batch = this.#waiting.slice(0, MAX_BATCH);
    await store.insert(batch.map(({ entry }) => entry));
    this.#isUnfiled = false;
    this.#begun.entered(batch.map(idOf));
    this.#remove(batch);
  }
}

import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Ledger, NewLedgerEntry } from "../core/ledger.ts";
import { BegunCompletions } from "./begun-completions.ts";
import type { EntryFiles } from "./entry-files.ts";
import { gather } from "./gather.ts";
import type { LedgerStore } from "./ledger-store.ts";

/** Limit of entries per batch. */
const MAX_BATCH = 500;
/** Limit of entries that wait in memory for a slow database; beyond it requests are refused. */
export const MAX_WAITING = 10_000;
/** Pause after a failed write. */
const RETRY_MS = 1_000;
/** Longest time for which callers wait for the data directory. */
const FILE_LIMIT_MS = 2_000;

/** Arguments of `then` that map a promise to whether it is fulfilled. */
const SUCCESS = [() => true, () => false] as const;

/** The part that cannot take entries, and the cause. */
interface LedgerTrouble {
  readonly of: "database" | "files";
  readonly cause: unknown;
}

export interface LedgerOptions {
  readonly store: Pick<LedgerStore, "insert" | "begin" | "flush">;
  /** Takes entries while the database is unavailable. */
  readonly files: Pick<EntryFiles, "append" | "recover" | "left" | "close">;
  readonly clock: Clock;
  /** ID of this process among those that share the database. */
  readonly process: string;
  /** Age in milliseconds of the oldest entry or note at which all are written. Default: 0, at once. */
  readonly intervalMs?: number;
  /** Whether the database is unavailable from the start. Default: it is not. */
  readonly isAway?: boolean;
  /** Called when the database becomes unavailable, and when files fail too. Undefined: the database is available again. */
  readonly onTrouble: (trouble: LedgerTrouble | undefined) => void;
}

interface LedgerState {
  /** Number of this process's entries that are not in the database yet. */
  readonly waiting: number;
  /** Whether the database is unavailable. */
  readonly away: boolean;
  /** Whether the files cannot take entries either, such as on a full disk. Then no completion is admitted. */
  readonly unwritable: boolean;
}

/** Core's ledger with the methods of its owner. */
export interface OwnedLedger extends Ledger {
  begin(entry: NewLedgerEntry): Promise<void>;
  append(entry: NewLedgerEntry): Promise<void>;
  state(): LedgerState;
  /** Whether the database is available and has all entries that waited for it. */
  isBooked(): boolean;
  /** Age of the oldest entry that waits for the database, in milliseconds; 0 without one. */
  lagMs(): number;
  /** Tries once more to write the waiting entries, then writes them into files. Nothing may be appended after it. */
  close(): Promise<UnwrittenEntries>;
}

/** Entries that are not in the database at the end of a process. */
interface UnwrittenEntries {
  /** Number of entries in files. */
  readonly filed: number;
  /** Entries that could not be written into files. */
  readonly left: readonly NewLedgerEntry[];
}

interface Waiting {
  readonly entry: NewLedgerEntry;
  /** By the clock's `monotonic`. */
  readonly sinceMs: number;
  readonly resolve: () => void;
  /** Whether the caller no longer waits for the entry. */
  isReleased: boolean;
}

const idOf = ({ entry }: Waiting): string => entry.completionId;

/**
 * Writes entries in batches: while one batch is written, the next one collects. Under load many entries share the cost of a durable
 * commit, and an entry waits for at most two commits and the interval. While the database is unavailable, batches go into files of the
 * data directory. When it is available again, this or a later process inserts them from there.
 */
export function createLedger(options: LedgerOptions): OwnedLedger {
  return new BatchingLedger(options);
}

class BatchingLedger implements OwnedLedger {
  readonly #options: LedgerOptions;
  readonly #begun: BegunCompletions;
  /** Entries in the order of their ends. The current batch stays at the front until it is written. */
  #waiting: Waiting[] = [];
  /** Number of entries in files, and the time of the first one. */
  readonly #filed = { count: 0, sinceMs: 0 };
  /** IDs of completions whose entries are in files of this process. */
  readonly #filedIds: string[] = [];
  #writing: Promise<boolean> | undefined;
  #recovering: Promise<void> | undefined;
  #away: boolean;
  /** Whether all files have been recovered since the database was last unavailable. */
  #isRecovered: boolean;
  /** Whether the last write to a file failed. */
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
      this.#waiting.push({ entry, sinceMs, resolve, isReleased: false });
    });
    void this.#write();
    await written;
  }

  admit(): void {
    if (!this.#unwritable && this.#waiting.length < MAX_WAITING) return;
    const message = "The usage ledger is unavailable. Try again shortly.";
    throw new Failure("overloaded", message, { retryAfterMs: RETRY_MS, unavailable: "ledger" });
  }

  state(): LedgerState {
    return { waiting: this.#waiting.length + this.#filed.count, away: this.#away, unwritable: this.#unwritable };
  }

  get #unwritable(): boolean {
    return this.#away && this.#isUnfiled;
  }

  isBooked(): boolean {
    return this.#isRecovered && this.#filed.count === 0 && !this.#waiting.some(({ isReleased }) => isReleased);
  }

  lagMs(): number {
    const nowMs = this.#options.clock.monotonic();
    const filedMs = this.#filed.count > 0 ? nowMs - this.#filed.sinceMs : 0;
    return Math.max(nowMs - (this.#waiting[0]?.sinceMs ?? nowMs), filedMs);
  }

  async close(): Promise<UnwrittenEntries> {
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

  /** Writes batches until no entry waits, or neither the database nor a file takes them. */
  async #write(): Promise<void> {
    if (this.#writing !== undefined) return;
    while (this.#waiting.length > 0 && !this.#closed) {
      this.#writing = this.#away ? this.#fileBatch() : this.#writeBatch();
      const goesOn = await this.#writing;
      if (!goesOn) break;
    }
    this.#writing = undefined;
  }

  /** Writes a batch into the database. Always resolves with true: after a failure the next batch goes into a file. */
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

  /** Writes a batch into a file. Resolves with whether that succeeded; if not, the entries stay in memory and their callers no longer wait. */
  async #fileBatch(): Promise<boolean> {
    await this.#gather();
    const { clock, files } = this.#options;
    const batch = this.#waiting.slice(0, MAX_BATCH);
    const releaseCallers = (): void => {
      for (const one of this.#waiting) {
        one.isReleased = true;
        one.resolve();
      }
    };
    const cancelLimit = clock.after(FILE_LIMIT_MS, releaseCallers);
    try {
      await files.append(batch.map(({ entry }) => entry));
    } catch (cause) {
      releaseCallers();
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
    // A recovery and a write to a file may both have taken an entry.
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
        // Files may be writable again before the database is available.
        void this.#write();
      });
    });
  }

  /**
   * Writes all waiting entries into the database, and new entries from then on. Rejects while the database is unavailable. `earlier`: the
   * previous call, which may still run if the database became unavailable again during it.
   */
  async #returnAfter(earlier: Promise<void> | undefined): Promise<void> {
    await earlier;
    await this.#recover();
    if (this.#away) this.#options.onTrouble(undefined);
    this.#away = false;
    // The batch that is being written may go into a file, which is recovered next.
    await this.#writing;
    await this.#recover();
    // If the database became unavailable again, batches may have gone into files since.
    if (!this.#away) this.#noteRecovered();
    void this.#write();
  }

  /** Notes that the database has the entries of all files, except files that could not be recovered. */
  #noteRecovered(): void {
    this.#isRecovered = true;
    // Resets the count, because other processes may have inserted some of the entries.
    if (this.#options.files.left > 0) return;
    this.#filed.count = 0;
    this.#begun.entered(this.#filedIds.splice(0));
  }

  /** Inserts the entries of files, or, if there are none because files fail, a waiting batch. Rejects while the database is unavailable. */
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

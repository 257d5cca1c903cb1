import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
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
  /** Called with the reason when the database becomes unavailable, and with undefined when it is available again. */
  readonly onTrouble: (trouble: { readonly cause: unknown; readonly waiting: number } | undefined) => void;
}

/** Core's ledger with the methods of its owner. */
export interface OwnedLedger extends Ledger {
  /** Number of unwritten entries, and whether the database is unavailable. */
  state(): { readonly waiting: number; readonly away: boolean };
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
    if (this.#waiting.length < MAX_WAITING) return;
    const message = "Completions cannot be written down at the moment. Try again shortly.";
    throw new Failure("overloaded", message, { retryAfterMs: RETRY_MS, unavailable: "ledger" });
  }

  state(): { readonly waiting: number; readonly away: boolean } {
    return { waiting: this.#waiting.length, away: this.#away };
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
      if (!this.#away) this.#options.onTrouble({ cause, waiting: this.#waiting.length });
      this.#away = true;
      for (const { resolve } of this.#waiting) resolve();
      return false;
    }
    this.#waiting.splice(0, batch.length);
    for (const { resolve } of batch) resolve();
    if (this.#away) this.#options.onTrouble(undefined);
    this.#away = false;
    return true;
  }
}

const NAME = /^unwritten-ledger-[0-9a-f-]+\.jsonl$/;

/**
 * Writes entries that the database did not accept before the end of the process to a file in the data directory, one per line,
 * readable for this user only. Returns its path when it is durable. Rejects when it cannot be written completely, such as on a
 * full disk, and leaves nothing that the next start would read.
 */
export async function spillEntries(dataDir: string, entries: readonly NewLedgerEntry[]): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, `unwritten-ledger-${randomUUID()}.jsonl`);
  // A temporary name until it is complete: half an entry would fail every later start.
  const unfinished = `${path}.part`;
  try {
    await writeDurably(unfinished, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  return path;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Writes the entries of such files to the ledger and removes the files. Returns the number of entries. Existing entries change
 * nothing, so two processes may do this at once.
 */
export async function recoverEntries(dataDir: string, store: Pick<LedgerStore, "insert">): Promise<number> {
  const names = (await unlessMissing(readdir(dataDir))) ?? [];
  let count = 0;
  for (const name of names.filter((each) => NAME.test(each))) {
    const path = join(dataDir, name);
    const text = await unlessMissing(readFile(path, "utf8"));
    // Another process has removed it.
    if (text === undefined) continue;
    const lines = text.split("\n").filter((line) => line !== "");
    await store.insert(lines.map((line) => JSON.parse(line) as NewLedgerEntry));
    await rm(path, { force: true });
    count += lines.length;
  }
  return count;
}

function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

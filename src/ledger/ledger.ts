import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Ledger, NewLedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "./ledger-store.ts";

/** How many entries are written at once at most. */
const MAX_BATCH = 500;
/** How many entries may wait for a database that is away, before no more requests are taken. */
export const MAX_WAITING = 10_000;
/** How long the database is left alone after it could not write. */
const RETRY_MS = 1_000;

export interface LedgerOptions {
  readonly store: Pick<LedgerStore, "insert">;
  readonly clock: Clock;
  /** Is told when the database goes away, with the reason, and when it is back, with undefined. */
  readonly onTrouble: (trouble: { readonly cause: unknown; readonly waiting: number } | undefined) => void;
}

/** Core's ledger, and what only its owner may do with it. */
export interface OwnedLedger extends Ledger {
  /** How many entries are not written yet, and whether that is because the database is away. */
  state(): { readonly waiting: number; readonly away: boolean };
  /** Tries once more to write what waits, and answers with what could not be written. Nothing may be appended after it. */
  close(): Promise<readonly NewLedgerEntry[]>;
}

interface Waiting {
  readonly entry: NewLedgerEntry;
  readonly resolve: () => void;
}

/**
 * Writes entries in batches: while one batch is being written the next one gathers, so that under load the cost of a durable
 * commit is shared by many, and nobody waits for more than two.
 */
export function createLedger(options: LedgerOptions): OwnedLedger {
  return new BatchingLedger(options);
}

class BatchingLedger implements OwnedLedger {
  readonly #options: LedgerOptions;
  /** In the order of their ends; those of the batch that is being written are still at the front. */
  readonly #waiting: Waiting[] = [];
  #writing: Promise<boolean> | undefined;
  #away = false;
  #closed = false;
  #cancelRetry = (): void => undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  async append(entry: NewLedgerEntry): Promise<void> {
    // Nothing is written any more: whoever closed it has taken over what waited.
    if (this.#closed) return;
    const written = new Promise<void>((resolve) => this.#waiting.push({ entry, resolve }));
    // While the database is away, the next attempt has its own time and nobody is kept waiting.
    if (this.#away) return;
    void this.#write();
    await written;
  }

  admit(): void {
    if (this.#waiting.length < MAX_WAITING) return;
    const message = "Completions cannot be written down at the moment. Try again shortly.";
    throw new Failure("overloaded", message, { retryAfterMs: RETRY_MS });
  }

  state(): { readonly waiting: number; readonly away: boolean } {
    return { waiting: this.#waiting.length, away: this.#away };
  }

  async close(): Promise<readonly NewLedgerEntry[]> {
    this.#closed = true;
    this.#cancelRetry();
    await this.#writing;
    while (this.#waiting.length > 0 && (await this.#writeBatch()));
    return this.#waiting.map(({ entry }) => entry);
  }

  /** Writes batch after batch until nothing waits, or the database is away. */
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
    // Completions that end in the same turn of the event loop are written together.
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
 * Keeps entries that the database could not take before the process had to end: in a file of the data directory, one entry a
 * line, readable for this user only. Answers with the file's path, when it is durable. Rejects, and leaves nothing that the
 * next start would read, when not all of it can be written: on a disk that is full, which may be why the database is away.
 */
export async function spillEntries(dataDir: string, entries: readonly NewLedgerEntry[]): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, `unwritten-ledger-${randomUUID()}.jsonl`);
  // Under another name until it is whole: half an entry would keep every later process from starting.
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
 * Writes what earlier processes had to leave behind, and removes their files. Answers how many entries there were. An entry
 * that is in the ledger already changes nothing, so two processes may do this at once.
 */
export async function recoverEntries(dataDir: string, store: Pick<LedgerStore, "insert">): Promise<number> {
  const names = (await unlessMissing(readdir(dataDir))) ?? [];
  let count = 0;
  for (const name of names.filter((each) => NAME.test(each))) {
    const path = join(dataDir, name);
    const text = await unlessMissing(readFile(path, "utf8"));
    // Another process was faster.
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

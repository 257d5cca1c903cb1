import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { NewLedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "./ledger-store.ts";
import { unlessMissing } from "./unless-missing.ts";

/** Size after which the next file is begun. Files are read as a whole. */
const FILE_BYTES = 8 * 2 ** 20;
/** Limit of the size of all files together, about half a million entries. Beyond it no file is begun. */
const MAX_BYTES = 512 * 2 ** 20;
/** Limit of entries per insert. */
const MAX_BATCH = 500;
/** Limit of files that a write may lose to other processes. Each takes over a file at most once at its start and once after an outage. */
const MAX_TRIES = 5;

/** Name of a complete file, and of a file that its process still writes to. */
const COMPLETE = /^(unwritten-ledger-[0-9a-f-]+)\.jsonl$/;
const OPEN = /^(unwritten-ledger-[0-9a-f-]+)\.open$/;

/** A file, or the data directory, that could not be used, and the cause. */
interface FileTrouble {
  readonly path: string;
  readonly cause: unknown;
}

interface OpenFile {
  readonly handle: FileHandle;
  readonly path: string;
  bytes: number;
}

/**
 * Files of the data directory with entries that the database could not take: one entry per line, readable only by this user. Several
 * processes may use the same directory. A process that inserts the entries of a file takes the file over first, by renaming it. If
 * another process was writing to it, that process detects the renaming after its write, and writes the same entries into a new file.
 * So an entry may be inserted twice, which changes nothing, but it is never lost.
 */
export class EntryFiles {
  readonly #dataDir: string;
  readonly #onTrouble: (trouble: FileTrouble) => void;
  /** Paths of the files that `#onTrouble` was called with. */
  readonly #told = new Set<string>();
  /** Prefix of the paths of this process's files. */
  readonly #own: string;
  #created = 0;
  #open: OpenFile | undefined;
  #left = 0;

  /** `onTrouble` is called once for each file that a recovery leaves. */
  constructor(dataDir: string, onTrouble: (trouble: FileTrouble) => void = () => {}) {
    this.#dataDir = dataDir;
    this.#own = join(dataDir, `unwritten-ledger-${randomUUID()}`);
    this.#onTrouble = onTrouble;
  }

  /** Number of this process's files that the last recovery skipped, because they could not be renamed, read or removed. */
  get left(): number {
    return this.#left;
  }

  /** Writes entries durably. Rejects when that fails, such as on a full disk. Calls must not overlap. */
  async append(entries: readonly NewLedgerEntry[]): Promise<void> {
    const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const file = (this.#open ??= await this.#create());
      try {
        await file.handle.appendFile(text);
        await file.handle.datasync();
      } catch (error) {
        await this.#leave(file);
        throw error;
      }
      if (await exists(file.path)) {
        file.bytes += Buffer.byteLength(text);
        if (file.bytes >= FILE_BYTES) await this.#leave(file);
        return;
      }
      await this.#leave(file);
    }
    throw new Error(`other processes keep taking over the files of ${this.#dataDir}`);
  }

  /**
   * Inserts the entries of all files, including those of earlier and of other processes, and removes the files. `inserted` is called
   * with the number of entries of each batch. Returns the number of all entries. Rejects when an insert fails; the remaining files
   * stay. A file with unreadable lines is kept under another name. A file that cannot be renamed, read or removed is left for the next
   * recovery.
   */
  async recover(store: Pick<LedgerStore, "insert">, inserted: (count: number) => void = () => {}): Promise<number> {
    this.#left = 0;
    let count = 0;
    for (const name of (await this.#orLeave(this.#dataDir, readdir(this.#dataDir))) ?? []) {
      const found = await this.#orLeave(join(this.#dataDir, name), this.#read(name));
      if (found === undefined) continue;
      const { path, text } = found;
      // Text after the last line feed is incomplete: its process was killed, or will write the entry again into a new file.
      const lines = text.split("\n").slice(0, -1);
      const entries = lines.flatMap(readEntry);
      for (let from = 0; from < entries.length; from += MAX_BATCH) {
        const batch = entries.slice(from, from + MAX_BATCH);
        await store.insert(batch);
        inserted(batch.length);
      }
      await this.#orLeave(path, entries.length === lines.length ? rm(path) : rename(path, `${path}.damaged`));
      count += entries.length;
    }
    return count;
  }

  /** Completes the file that is being written, so that any process can recover it. */
  async close(): Promise<void> {
    if (this.#open !== undefined) await this.#leave(this.#open);
  }

  async #create(): Promise<OpenFile> {
    await mkdir(this.#dataDir, { recursive: true, mode: 0o700 });
    if ((await this.#size()) >= MAX_BYTES)
      throw new Error(`the unwritten entries in ${this.#dataDir} have reached ${MAX_BYTES / 2 ** 20} MiB`);
    const path = `${this.#own}-${(this.#created++).toString(16)}.open`;
    const handle = await open(path, "ax", 0o600);
    await syncFolder(this.#dataDir);
    return { handle, path, bytes: 0 };
  }

  async #size(): Promise<number> {
    let bytes = 0;
    for (const name of await readdir(this.#dataDir))
      if (COMPLETE.test(name) || OPEN.test(name))
        bytes += (await unlessMissing(stat(join(this.#dataDir, name))))?.size ?? 0;
    return bytes;
  }

  /** Closes a file, and removes it when none of its entries was reported as durable. */
  async #leave(file: OpenFile): Promise<void> {
    this.#open = undefined;
    await file.handle.close().catch(() => undefined);
    if (file.bytes === 0) await rm(file.path, { force: true });
    else await unlessMissing(rename(file.path, toComplete(file.path)));
  }

  /** The result of work on a file. Undefined when the file is missing, because another process has removed it, or must be skipped. */
  async #orLeave<T>(path: string, working: Promise<T>): Promise<T | undefined> {
    try {
      return await unlessMissing(working);
    } catch (cause) {
      if (path === this.#dataDir || path.startsWith(this.#own)) this.#left++;
      if (!this.#told.has(path)) this.#onTrouble({ path, cause });
      this.#told.add(path);
      return undefined;
    }
  }

  /** Takes over a file of entries and reads it; undefined for another file. */
  async #read(name: string): Promise<{ readonly path: string; readonly text: string } | undefined> {
    const path = await this.#takeOver(name);
    return path === undefined ? undefined : { path, text: await readFile(path, "utf8") };
  }

  /** Takes over a file of entries and returns its path; its writer no longer writes to it. Undefined for another file. */
  async #takeOver(name: string): Promise<string | undefined> {
    const path = join(this.#dataDir, name);
    if (COMPLETE.test(name)) return path;
    if (!OPEN.test(name)) return undefined;
    await unlessMissing(rename(path, toComplete(path)));
    return toComplete(path);
  }
}

/** The entry of a line; empty for a line that the disk has damaged. */
function readEntry(line: string): NewLedgerEntry[] {
  try {
    return [JSON.parse(line) as NewLedgerEntry];
  } catch {
    return [];
  }
}

/** Makes the names of new files durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function toComplete(path: string): string {
  return path.replace(/open$/, "jsonl");
}

async function exists(path: string): Promise<boolean> {
  return (await unlessMissing(stat(path))) !== undefined;
}

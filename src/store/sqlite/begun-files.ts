import { appendFileSync, closeSync, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import { readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { NewLedgerEntry } from "../../core/ledger.ts";
import type { Note } from "../../ledger/ledger-store.ts";
import { unlessMissing } from "../../ledger/unless-missing.ts";

/** Length in characters after which the next file is begun. */
const FILE_LENGTH = 2 ** 20;
/** Number of earlier files beyond which notes of old ones are copied, and the share of a file's notes that may be needed then. */
const KEPT_FILES = 8;
const COPIED_SHARE = 1 / 4;
/** Limit of files that a write may lose to other processes, each of which takes over a file at most once per settlement. */
const MAX_TRIES = 5;

/** Name of a file of notes; `lost`: a process has taken it over to settle its completions. */
const NAME = /^begun-completions-(?<process>[\w-]+)-\d+\.(?:jsonl|lost)$/;

interface NotesFile {
  readonly process: string;
  readonly path: string;
  readonly descriptor: number;
  /** In characters. */
  length: number;
  /** Number of notes that were written to it. */
  written: number;
  /** IDs of those that are still needed. */
  readonly needed: Set<string>;
}

/** A file of notes and the process that it belongs to. */
interface FoundFile {
  readonly process: string;
  readonly path: string;
}

/**
 * Notes of begun completions in files of SQLite's directory, where every process that shares the database finds them: a write to a file
 * costs a fraction of a message to SQLite's thread, and survives the end of the process. One note per line, readable only by this
 * user. A file is removed when none of its notes is needed; a process that settles the completions of a lost one takes its files over
 * first, by renaming them. If the other process was only late, it detects that after its next write, and begins a new file.
 */
export class BegunFiles {
  readonly #directory: string;
  /** The file that a process writes to. */
  readonly #current = new Map<string, NotesFile>();
  /** Earlier files with notes that are still needed, the oldest first. */
  readonly #ended = new Set<NotesFile>();
  /** Files by the IDs of their needed notes. */
  readonly #files = new Map<string, NotesFile>();
  #created = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes a note. Throws when that fails, such as on a full disk. */
  write(note: Note): void {
    const line = `${JSON.stringify(note.id)}\t${JSON.stringify(note.entries)}\n`;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const file = this.#current.get(note.process) ?? this.#create(note.process);
      try {
        this.#append(file, note.id, line);
      } catch (error) {
        // Part of the line may be written.
        this.#end(file);
        throw error;
      }
      if (existsSync(file.path)) {
        if (file.length >= FILE_LENGTH) {
          this.#end(file);
          this.#copyOld(file.process);
        }
        return;
      }
      this.#end(file);
      this.#forget(file);
    }
    throw new Error(`other processes keep taking over the files of ${this.#directory}`);
  }

  /** Removes notes, and files without needed notes: an idle process has none. */
  remove(ids: readonly string[]): void {
    for (const id of ids) {
      const file = this.#files.get(id);
      if (file === undefined) continue;
      this.#files.delete(id);
      file.needed.delete(id);
      if (this.#ended.has(file)) this.#removeIfDone(file);
      else if (file.needed.size === 0) this.#end(file);
    }
  }

  /** The files of all processes. */
  async list(): Promise<readonly FoundFile[]> {
    const found = (await readdir(this.#directory)).map((name) => NAME.exec(name));
    return found.flatMap((match) =>
      match === null ? [] : [{ process: match.groups!["process"]!, path: join(this.#directory, match[0]) }],
    );
  }

  /**
   * Takes over the file of a lost process, calls `settle` with the entries of its notes, of which some may have been written, and then
   * removes the file. When another process does the same at this moment, both settle it, or that one has already removed it: in any case
   * the file is settled once this resolves.
   */
  async settle(path: string, settle: (entries: readonly NewLedgerEntry[]) => Promise<void>): Promise<void> {
    const lost = path.replace(/jsonl$/, "lost");
    if (lost !== path) await unlessMissing(rename(path, lost));
    const text = await unlessMissing(readFile(lost, "utf8"));
    if (text === undefined) return;
    // Text after the last line feed is a note that was cut off, whose completions were not begun.
    await settle(text.split("\n").slice(0, -1).flatMap(readEntries));
    await rm(lost, { force: true });
  }

  /** Closes all files and removes those without needed notes. */
  close(): void {
    for (const file of this.#current.values()) this.#end(file);
  }

  #create(process: string): NotesFile {
    const path = join(this.#directory, `begun-completions-${process}-${++this.#created}.jsonl`);
    const descriptor = openSync(path, "ax", 0o600);
    const file: NotesFile = { process, path, descriptor, length: 0, written: 0, needed: new Set() };
    this.#current.set(process, file);
    return file;
  }

  #append(file: NotesFile, id: string, line: string): void {
    appendFileSync(file.descriptor, line);
    file.length += line.length;
    file.written += 1;
    file.needed.add(id);
    this.#files.set(id, file);
  }

  /** Ends a file, to which nothing is written from now on. */
  #end(file: NotesFile): void {
    closeSync(file.descriptor);
    this.#current.delete(file.process);
    this.#ended.add(file);
    this.#removeIfDone(file);
  }

  /** Copies the notes of the oldest file of which few are needed into a new one, so that long calls do not keep many files. */
  #copyOld(process: string): void {
    if (this.#ended.size <= KEPT_FILES) return;
    const old = this.#ended
      .values()
      .find((file) => file.process === process && file.needed.size <= file.written * COPIED_SHARE);
    if (old === undefined) return;
    if (!existsSync(old.path)) return this.#forget(old);
    const lines = readFileSync(old.path, "utf8").split("\n").slice(0, -1);
    const next = this.#create(process);
    for (const line of lines) {
      const id = idOf(line);
      if (old.needed.delete(id)) this.#append(next, id, `${line}\n`);
    }
    this.#removeIfDone(old);
  }

  #removeIfDone(file: NotesFile): void {
    if (file.needed.size > 0) return;
    this.#ended.delete(file);
    rmSync(file.path, { force: true });
  }

  /** Forgets a file that another process has taken over, with the notes in it. */
  #forget(file: NotesFile): void {
    this.#ended.delete(file);
    for (const id of file.needed) this.#files.delete(id);
  }
}

function idOf(line: string): string {
  return JSON.parse(line.slice(0, line.indexOf("\t"))) as string;
}

/** The entries of a line; empty for a line that a crash of the machine has damaged. */
function readEntries(line: string): readonly NewLedgerEntry[] {
  try {
    return JSON.parse(line.slice(line.indexOf("\t") + 1)) as NewLedgerEntry[];
  } catch {
    return [];
  }
}

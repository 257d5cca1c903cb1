import { write, writeSync } from "node:fs";

/** Pipes take so many bytes as a whole or not at all. */
const WHOLE_BYTES = 4096;

/** Lines are written together when they are so long, or after so many milliseconds: a system call costs more than a line. */
const BATCH_CHARS = 64 * 1024;
const BATCH_MS = 100;

/** More than this does not wait for a reader that has stopped reading. */
const MAX_WAITING_CHARS = 16 * 1024 * 1024;

/**
 * Writes lines to an open file, many at a time and in their order, and waits for none of it. What is left at the end of the
 * process is written then. What cannot be written is lost: a reader of the log that went away takes nobody with it.
 */
export class LineBatches {
  readonly #descriptor: number;
  readonly #isShared: boolean;
  readonly #batchChars: number;
  readonly #lines: string[] = [];
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  /** Where other processes write into the same file, lines are not mixed with theirs: at most 4 KiB are written at once. */
  constructor(descriptor: number, { isShared = false }: { readonly isShared?: boolean } = {}) {
    this.#descriptor = descriptor;
    this.#isShared = isShared;
    this.#batchChars = isShared ? WHOLE_BYTES : BATCH_CHARS;
    process.once("exit", () => this.#writeAll());
  }

  /** The line, its line feed included. */
  write(line: string): void {
    if (this.#size > MAX_WAITING_CHARS) return;
    this.#lines.push(line);
    this.#size += line.length;
    if (this.#size >= this.#batchChars) this.#flush();
    else this.#plan();
  }

  #plan(): void {
    this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#writing && this.#lines.length > 0) this.#write(this.#take());
  }

  #take(): Buffer {
    const text = this.#lines.splice(0, this.#isShared ? this.#countWhole() : Infinity).join("");
    this.#size -= text.length;
    return Buffer.from(text);
  }

  /** How many lines the file takes as a whole; a longer one goes by itself. */
  #countWhole(): number {
    let bytes = 0;
    const first = this.#lines.findIndex((line) => (bytes += Buffer.byteLength(line)) > WHOLE_BYTES);
    return first === -1 ? this.#lines.length : Math.max(first, 1);
  }

  #write(bytes: Buffer): void {
    this.#writing = true;
    write(this.#descriptor, bytes, (error, written) => {
      const rest = error === null ? bytes.subarray(written) : bytes;
      if (error !== null && error.code !== "EAGAIN") this.#written();
      else if (rest.length === 0) this.#written();
      // A pipe that is full: its reader has some time.
      else if (error !== null) setTimeout(() => this.#write(rest), BATCH_MS).unref();
      else this.#write(rest);
    });
  }

  #written(): void {
    this.#writing = false;
    if (this.#size >= this.#batchChars) this.#flush();
    else if (this.#size > 0) this.#plan();
  }

  #writeAll(): void {
    try {
      while (this.#lines.length > 0) writeSync(this.#descriptor, this.#take());
    } catch {
      // There is nobody left to tell.
    }
  }
}

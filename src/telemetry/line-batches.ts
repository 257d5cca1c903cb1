import { write, writeSync } from "node:fs";

/** Largest write that a pipe takes atomically (PIPE_BUF). */
const WHOLE_BYTES = 4096;

/** A batch is written at `BATCH_CHARS` or after `BATCH_MS`: a system call costs more than a line. */
const BATCH_CHARS = 64 * 1024;
const BATCH_MS = 100;

/** Limit of the buffer when the reader has stopped reading; further lines are dropped. */
const MAX_WAITING_CHARS = 16 * 1024 * 1024;

/**
 * Writes lines to an open file in order, in batches and without blocking. The remaining lines are written when the process
 * exits. Lines that cannot be written are dropped: a closed log reader must not stop the process.
 */
export class LineBatches {
  readonly #descriptor: number;
  readonly #isShared: boolean;
  readonly #batchChars: number;
  readonly #lines: string[] = [];
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  /** `isShared`: other processes write into the same file, so at most 4 KiB are written at once to keep lines whole. */
  constructor(descriptor: number, { isShared = false }: { readonly isShared?: boolean } = {}) {
    this.#descriptor = descriptor;
    this.#isShared = isShared;
    this.#batchChars = isShared ? WHOLE_BYTES : BATCH_CHARS;
    process.once("exit", () => this.#writeAll());
  }

  /** Appends a line, which includes its line feed. */
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

  /** Number of lines that fit into one atomic write; a longer line is written alone. */
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
      // EAGAIN: the pipe is full. Retry after BATCH_MS.
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
      // The log file itself failed; there is nowhere to report it.
    }
  }
}

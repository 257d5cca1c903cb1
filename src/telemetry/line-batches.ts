import { write, writeSync } from "node:fs";

/** Lines are written together when they are so long, or after so many milliseconds: a system call costs more than a line. */
const BATCH_CHARS = 64 * 1024;
const BATCH_MS = 100;

/**
 * Writes lines to an open file, many at a time and in their order, and waits for none of it. What is left at the end of the
 * process is written then. What cannot be written is lost: a reader of the log that went away takes nobody with it.
 */
export class LineBatches {
  readonly #descriptor: number;
  #lines: string[] = [];
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    process.once("exit", () => this.#writeAll());
  }

  /** The line, its line feed included. */
  write(line: string): void {
    this.#lines.push(line);
    this.#size += line.length;
    if (this.#size >= BATCH_CHARS) this.#flush();
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
    const bytes = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#size = 0;
    return bytes;
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
    if (this.#size >= BATCH_CHARS) this.#flush();
    else if (this.#size > 0) this.#plan();
  }

  #writeAll(): void {
    try {
      if (this.#lines.length > 0) writeSync(this.#descriptor, this.#take());
    } catch {
      // There is nobody left to tell.
    }
  }
}

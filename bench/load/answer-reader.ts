import { MarkCounter } from "./mark-counter.ts";

/** Bytes kept of a body's end, for the check of its last bytes. */
const TAIL_BYTES = 64;
const LAST_CHUNK = "\r\n0\r\n\r\n";
/** Separator between two chunks. A chunk may end within the checked last bytes. */
const NEXT_CHUNK = /\r\n[0-9a-f]+\r\n/gi;

/** Result of one answer. */
export interface ReadAnswer {
  readonly status: number;
  readonly marks: number;
  /** The body's last bytes, without the framing. */
  readonly tail: string;
  /** The body's bytes, with its framing. */
  readonly bytes: number;
}

/**
 * Reads the answers on one HTTP/1.1 connection, one at a time. Checks only the status, the framing, the marks and the
 * last bytes, to cost little compared with the server.
 */
export class AnswerReader {
  #head = "";
  #inBody = false;
  #status = 0;
  #counter = new MarkCounter();
  #tail = "";
  #bytes = 0;
  /** Remaining bytes of the body; undefined with chunked coding. */
  #left: number | undefined;

  /** Marks of the current answer. */
  get marks(): number {
    return this.#counter.marks;
  }

  /** Processes one read; returns the answer once it is complete. Throws an Error for an invalid response. */
  push(bytes: Buffer): ReadAnswer | undefined {
    let body = bytes;
    if (!this.#inBody) {
      const begun = this.#head.length;
      this.#head += bytes.toString("latin1");
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return undefined;
      this.#readHead(this.#head.slice(0, end + 2));
      body = bytes.subarray(end + 4 - begun);
    }
    this.#counter.push(body);
    this.#bytes += body.length;
    this.#tail = (this.#tail + body.toString("latin1", Math.max(0, body.length - TAIL_BYTES))).slice(-TAIL_BYTES);
    if (this.#left === undefined) return this.#tail.endsWith(LAST_CHUNK) ? this.#finish(LAST_CHUNK.length) : undefined;
    this.#left -= body.length;
    if (this.#left < 0) throw new Error("more bytes than content-length says");
    return this.#left === 0 ? this.#finish(0) : undefined;
  }

  #readHead(head: string): void {
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1];
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (status === undefined) throw new Error("no status line");
    if (length === undefined && !/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) throw new Error("no framing");
    this.#status = Number(status);
    this.#left = length === undefined ? undefined : Number(length);
    this.#inBody = true;
  }

  #finish(framing: number): ReadAnswer {
    const ending = this.#tail.slice(0, this.#tail.length - framing);
    const tail = framing === 0 ? ending : ending.replace(NEXT_CHUNK, "");
    const answer = { status: this.#status, marks: this.#counter.marks, tail, bytes: this.#bytes };
    this.#head = "";
    this.#inBody = false;
    this.#counter = new MarkCounter();
    this.#tail = "";
    this.#bytes = 0;
    return answer;
  }
}

import { constants, type ServerHttp2Stream } from "node:http2";
import { SLOWEST_READER } from "../drain.ts";

/** Size of a write. Progress of one that is larger would not be seen before its end. */
const SLICE_BYTES = 64 * 1024;

type Callback = (error?: Error | null) => void;

/** What Node's stream does when its `Writable` calls it. */
interface Sink {
  _write(bytes: Buffer, encoding: BufferEncoding, callback: Callback): void;
  _writev(chunks: readonly { readonly chunk: Buffer }[], callback: Callback): void;
}

/** Hooks of a stream, which replace its methods. */
interface Hooked {
  _write: Sink["_write"];
  _writev: Sink["_writev"] | undefined;
  write(chunk: string | Uint8Array, ...more: readonly unknown[]): boolean;
  end(...given: readonly unknown[]): ServerHttp2Stream;
}

export interface UnreadAnswerOptions {
  /** Time without progress after which the stream closes, in milliseconds. It is longer for a large write. */
  readonly stallMs: number;
  /** Called when the server has ended the answer, with the bytes that its caller has not read. */
  readonly ended: (bytes: number) => void;
}

/**
 * Closes a stream whose caller does not read its answer, also after the handler has ended. Node's timeout of a stream would not do: it
 * takes every write to the connection for progress, so answers to PINGs renew it.
 */
export class UnreadAnswer {
  readonly #stream: ServerHttp2Stream;
  readonly #stallMs: number;
  /** Writes that the stream has passed on, each of which begins when the one before it is sent; and bytes of the last one. */
  #writes = 0;
  #bytes = 0;
  /** What was passed on at the last progress, and the time of the check that saw it; undefined while nothing is unread. */
  #seen: { readonly writes: number; readonly atMs: number } | undefined;

  constructor(stream: ServerHttp2Stream, { stallMs, ended }: UnreadAnswerOptions) {
    this.#stream = stream;
    this.#stallMs = stallMs;
    const own = stream as unknown as Hooked;
    const node = Object.getPrototypeOf(stream) as Sink & Pick<Hooked, "write" | "end">;
    own._write = (bytes, encoding, callback) => {
      this.#passes(bytes.length);
      node._write.call(stream, bytes, encoding, callback);
    };
    own._writev = (chunks, callback) => {
      this.#passes(chunks.reduce((sum, { chunk }) => sum + chunk.length, 0));
      node._writev.call(stream, chunks, callback);
    };
    own.write = (chunk, ...more) => {
      if (chunk.length <= SLICE_BYTES) return node.write.call(stream, chunk, ...more);
      // Slice by slice: it would join them again.
      own._writev = undefined;
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      let at = 0;
      for (; at + SLICE_BYTES < bytes.length; at += SLICE_BYTES)
        node.write.call(stream, bytes.subarray(at, at + SLICE_BYTES));
      return node.write.call(stream, bytes.subarray(at), ...more);
    };
    own.end = (...given) => {
      node.end.call(stream, ...given);
      if (!stream.closed) ended(stream.writableLength);
      return stream;
    };
  }

  /** Closes the stream when there was no progress for too long. Called at intervals, with the clock's `monotonic`. */
  look(nowMs: number): void {
    const seen = this.#seen;
    if (this.#stream.writableLength === 0) this.#seen = undefined;
    else if (seen?.writes !== this.#writes) this.#seen = { writes: this.#writes, atMs: nowMs };
    else if (nowMs - seen.atMs >= this.#stallMs + this.#bytes / SLOWEST_READER) this.#closeUnlessRead(seen.writes);
  }

  #passes(bytes: number): void {
    this.#writes += 1;
    this.#bytes = bytes;
  }

  /** After a time in which the event loop was busy, checks run before sockets are read, and so before the caller's windows are known. */
  #closeUnlessRead(writes: number): void {
    // Sockets are read between timers and immediates.
    setImmediate(() => {
      const isUnread = this.#writes === writes && this.#stream.writableLength > 0;
      if (isUnread && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
    });
  }
}

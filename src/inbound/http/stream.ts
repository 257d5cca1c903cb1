import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Answering, OpenCall } from "../calls.ts";
import { type Drainable, drained } from "../drain.ts";

/** Pause after which a comment is sent: many proxies close connections after a minute of silence. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Idle time of a connection after a failed stream, before it is closed: longer than clients with further requests leave a
 * connection unused.
 */
const FAILED_IDLE_MS = 3_000;

/** Writes one event stream with back-pressure: the head at the first write, comments during pauses. */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #call: OpenCall;
  readonly #head: () => string[];
  readonly #keepAliveText: () => string;
  #cancelTimer: () => void;
  #wroteMs: number;
  #isWriting = false;

  /** `head` returns the response headers at the first write; `keepAlive` returns what is sent during a pause, empty for nothing. */
  constructor(
    response: ServerResponse,
    { clock, call, head, keepAlive }: { clock: Clock; call: OpenCall; head: () => string[]; keepAlive: () => string },
  ) {
    this.#response = response;
    this.#clock = clock;
    this.#call = call;
    this.#head = head;
    this.#keepAliveText = keepAlive;
    this.#wroteMs = clock.monotonic();
    this.#cancelTimer = this.#keepAlive(KEEP_ALIVE_MS);
  }

  /** Whether anything was sent, comments included. */
  get begun(): boolean {
    return this.#response.headersSent;
  }

  /** Whether a large text is being written in slices. */
  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Writes; resolves when the caller has read enough. Throws the call's reason when it disconnects or reads nothing. */
  write(text: string): Promise<void> | undefined {
    this.#wroteMs = this.#clock.monotonic();
    const pace = { clock: this.#clock, call: this.#call };
    if (isSmall(text)) {
      const sink = this.#send(text);
      return sink && drained(sink, { ...pace, bytes: text.length });
    }
    if (!this.begun) this.#response.writeHead(200, this.#head());
    this.#isWriting = true;
    return writeSlices(this.#response, [Buffer.from(text)], pace).finally(() => (this.#isWriting = false));
  }

  /** Writes the last events and ends the stream. */
  end(text: string): void {
    this.close();
    if (!this.begun) this.#response.writeHead(200, this.#head());
    this.#response.end(text);
  }

  /**
   * Writes an error event, and closes the connection, so that the stream does not look complete. The close is delayed: the head
   * allowed reuse of the connection, and a request that was sent on it meanwhile would get no answer. Such a request is the
   * connection's last.
   */
  abort(text: string): void {
    this.close();
    const response = this.#response;
    const { socket } = response;
    response.shouldKeepAlive = false;
    // Node sets its own idle timeout at the end of a response, after its listeners were called.
    response.end(text, () => setImmediate(() => socket?.setTimeout(FAILED_IDLE_MS)));
  }

  /** Stops the comments. */
  close(): void {
    this.#cancelTimer();
  }

  /** Writes one piece. Returns the stream that is full, if one is. */
  #send(text: string): Drainable | undefined {
    const response = this.#response;
    const { socket } = response;
    // After the head, the chunked coding is written here as one string: the response would write four strings, which costs as
    // much as all other work for the piece.
    if (response.headersSent && response.chunkedEncoding && socket !== null && response.writableLength === 0) {
      const chunk = `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
      return socket.write(chunk) ? undefined : socket;
    }
    if (!this.begun) return this.#begin(text);
    return response.write(text) ? undefined : response;
  }

  /**
   * Writes head and first piece with two writes in one system call. Node keeps the head until the end of the response; joined
   * with the piece it would be kept as the seventy small strings that it was made of.
   */
  #begin(text: string): Drainable | undefined {
    const response = this.#response;
    response.writeHead(200, this.#head());
    response.cork();
    response.flushHeaders();
    const hasRoom = response.write(text);
    response.uncork();
    return hasRoom ? undefined : response;
  }

  /** One timer for all writes: it checks the time since the last write, and waits for the rest of the pause. */
  #keepAlive(waitMs: number): () => void {
    return this.#clock.after(waitMs, () => {
      const leftMs = this.#wroteMs + KEEP_ALIVE_MS - this.#clock.monotonic();
      this.#cancelTimer = this.#keepAlive(leftMs > 0 ? leftMs : KEEP_ALIVE_MS);
      const isFull = this.#response.writableNeedDrain || this.#response.socket?.writableNeedDrain === true;
      const text = leftMs <= 0 && !isFull ? this.#keepAliveText() : "";
      if (text !== "") this.#send(text);
    });
  }
}

/** Size of a write: a reader that takes this much in half a minute is slow, but connected. */
const SLICE_BYTES = 64 * 1024;

/** Whether a text is written in one piece. */
export function isSmall(text: string): boolean {
  return text.length <= SLICE_BYTES / 4;
}

/** Writes many bytes with back-pressure. Throws the call's reason when the reader disconnects or reads nothing. */
export async function writeSlices(
  response: ServerResponse,
  pieces: Iterable<Buffer>,
  { clock, call }: { readonly clock: Clock; readonly call: Answering },
): Promise<void> {
  for (const piece of pieces)
    for (const slice of slicesOf(piece))
      if (response.write(slice)) call.wrote(slice.length);
      else await drained(response, { clock, call, bytes: slice.length });
}

/** Parts of a buffer that are written one by one. */
export function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
}

import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Answering, OpenCall } from "../calls.ts";
import { KEEP_ALIVE } from "../../formats/openai-chat/stream.ts";
import { type Drainable, drained } from "../drain.ts";

/** Pause after which a comment is sent: many proxies close connections after a minute of silence. */
export const KEEP_ALIVE_MS = 15_000;

/** Idle time of a connection after a failed stream, before it is closed. */
const ABORTED_IDLE_MS = 1000;

/** Writes one event stream with back-pressure: the head at the first write, comments during pauses. */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #call: OpenCall;
  readonly #head: () => string[];
  #cancelTimer: () => void;
  #wroteMs: number;

  /** `head` returns the response headers at the first write. */
  constructor(response: ServerResponse, { clock, call, head }: { clock: Clock; call: OpenCall; head: () => string[] }) {
    this.#response = response;
    this.#clock = clock;
    this.#call = call;
    this.#head = head;
    this.#wroteMs = clock.monotonic();
    this.#cancelTimer = this.#keepAlive(KEEP_ALIVE_MS);
  }

  /** Whether anything was sent, comments included. */
  get begun(): boolean {
    return this.#response.headersSent;
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
    return writeSlices(this.#response, [Buffer.from(text)], pace);
  }

  /** Writes the last events and ends the stream. */
  end(text: string): void {
    this.close();
    if (!this.begun) this.#response.writeHead(200, this.#head());
    this.#response.end(text);
  }

  /**
   * Writes a last event that is not an end, and lets the connection end: nobody may take the stream for complete. Not at
   * once, because its head has promised a connection that can be used again: a request that was sent on it meanwhile, by a
   * caller who shares it, would be lost without an answer. Such a request is the connection's last.
   */
  abort(text: string): void {
    this.close();
    const response = this.#response;
    const { socket } = response;
    response.shouldKeepAlive = false;
    // Node sets its own time for an idle connection when an answer has ended, after everybody was told of the end.
    response.end(text, () => setImmediate(() => socket?.setTimeout(ABORTED_IDLE_MS)));
  }

  /** Stops the comments. */
  close(): void {
    this.#cancelTimer();
  }

  /** Writes one piece; what has no room for more, if anything. */
  #send(text: string): Drainable | undefined {
    const response = this.#response;
    const { socket } = response;
    // Once its head is out, a piece is put into the chunked coding here, and goes out as one string: the response would
    // write four, gathered for the end of the turn, which costs as much as all else that is done with it.
    if (response.headersSent && response.chunkedEncoding && socket !== null && response.writableLength === 0) {
      const chunk = `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
      return socket.write(chunk) ? undefined : socket;
    }
    if (!this.begun) return this.#begin(text);
    return response.write(text) ? undefined : response;
  }

  /**
   * Writes the head, by itself, and the first piece in one system call. Node keeps the head's text for as long as the
   * answer lasts; joined with what follows it would stay the seventy small strings of which it was made.
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

  /** One timer, however often is written: it looks whether there was silence, and waits for what is left of it. */
  #keepAlive(waitMs: number): () => void {
    return this.#clock.after(waitMs, () => {
      const leftMs = this.#wroteMs + KEEP_ALIVE_MS - this.#clock.monotonic();
      this.#cancelTimer = this.#keepAlive(leftMs > 0 ? leftMs : KEEP_ALIVE_MS);
      const isFull = this.#response.writableNeedDrain || this.#response.socket?.writableNeedDrain === true;
      if (leftMs <= 0 && !isFull) this.#send(KEEP_ALIVE);
    });
  }
}

/** What is written at once: a reader that takes this much in half a minute is slow, but there. */
const SLICE_BYTES = 64 * 1024;

/** Whether a text is written in one piece. */
export function isSmall(text: string): boolean {
  return text.length <= SLICE_BYTES / 4;
}

/** Writes many bytes as fast as they are read. Throws the call's reason when the reader leaves, or reads nothing. */
export async function writeSlices(
  response: ServerResponse,
  pieces: readonly Buffer[],
  { clock, call }: { readonly clock: Clock; readonly call: Answering },
): Promise<void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      if (response.write(piece.subarray(at, at + SLICE_BYTES))) continue;
      await drained(response, { clock, call, bytes: SLICE_BYTES });
    }
  }
}

/**
 * Gives the memory of large pieces back at once. They must be out, and nobody may look at them again: they are empty
 * then. V8 would find them in a collection of the whole heap, which costs more than all else that is done with them.
 */
export function release(pieces: readonly Buffer[]): void {
  for (const { buffer, byteLength } of pieces) {
    // Smaller ones may share their memory with others.
    if (byteLength > buffer.byteLength / 2 && buffer instanceof ArrayBuffer) buffer.transfer(0);
  }
}

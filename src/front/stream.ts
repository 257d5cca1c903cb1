import type { ServerResponse } from "node:http";
import type { Clock } from "../core/clock.ts";
import type { OpenCall } from "../edge/calls.ts";
import { drained } from "../edge/drain.ts";
import { KEEP_ALIVE } from "./openai/stream.ts";
import { isSmall, writeSlices } from "./slices.ts";

/** After this much silence a comment is sent: many proxies cut connections that are silent for a minute. */
export const KEEP_ALIVE_MS = 15_000;

/** Writes one event stream: its head at the first write, comments while it is silent, never more than is read. */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #call: OpenCall;
  readonly #head: () => string[];
  #cancelTimer: () => void;

  /** `head` gives the response's headers when they are needed. */
  constructor(response: ServerResponse, { clock, call, head }: { clock: Clock; call: OpenCall; head: () => string[] }) {
    this.#response = response;
    this.#clock = clock;
    this.#call = call;
    this.#head = head;
    this.#cancelTimer = this.#keepAlive();
  }

  /** Whether anything, be it only a comment, went out. */
  get begun(): boolean {
    return this.#response.headersSent;
  }

  /** Writes; resolves when the caller has room for more. Throws the call's reason when it leaves or reads nothing. */
  write(text: string): Promise<void> | undefined {
    this.#cancelTimer();
    this.#cancelTimer = this.#keepAlive();
    const pace = { clock: this.#clock, call: this.#call };
    if (isSmall(text)) return this.#send(text) ? undefined : drained(this.#response, { ...pace, bytes: text.length });
    if (!this.begun) this.#response.writeHead(200, this.#head());
    return writeSlices(this.#response, [Buffer.from(text)], pace);
  }

  /** Writes the last words and ends the stream. */
  end(text: string): void {
    this.close();
    if (!this.begun) this.#response.writeHead(200, this.#head());
    this.#response.end(text);
  }

  /** Writes a last event that is not an end, and closes the connection: nobody may take the stream for complete. */
  abort(text: string): void {
    this.close();
    const { socket } = this.#response;
    this.#response.end(text, () => socket?.destroySoon());
  }

  /** Stops the comments. */
  close(): void {
    this.#cancelTimer();
  }

  #send(text: string): boolean {
    if (!this.begun) this.#response.writeHead(200, this.#head());
    return this.#response.write(text);
  }

  #keepAlive(): () => void {
    return this.#clock.after(KEEP_ALIVE_MS, () => {
      this.#cancelTimer = this.#keepAlive();
      if (!this.#response.writableNeedDrain) this.#send(KEEP_ALIVE);
    });
  }
}

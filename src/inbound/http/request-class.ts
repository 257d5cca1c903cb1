import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { Failure } from "../../core/failure.ts";

/** The first pieces of a body are passed on as they come, however small: most bodies have one. */
const PASSED_PIECES = 16;
/** Later pieces below this size are joined: a `Buffer` takes some 300 bytes more than its content. */
const JOINED_BELOW_BYTES = 1024;
/** Later pieces below this size are counted. Encoded lines, of 76 bytes, are above it. */
const TINY_BYTES = 64;
/**
 * Limit of counted pieces of a connection in a second, which one read of 64 KiB may exceed: some 5 ms of work. A client that writes
 * word by word stays far below it.
 */
const TINY_PER_SECOND = 8 * 1024;

interface RequestClassOptions {
  readonly clock: Pick<Clock, "monotonic">;
  /** Whether the connection has as many requests without a sent response as it may. */
  readonly isFull: (socket: Socket) => boolean;
}

/**
 * The class of this server's requests. Node's parser does two things before anything else sees a request:
 *
 * It creates a response for each request of a read of 64 KiB, up to 1,500: with 3,000 connections they ended a process with a
 * heap of 512 MiB. It takes those of a full connection for upgrades: creates no response for them, does not keep them, and
 * closes the connection after the read, because this server has no `upgrade` listener.
 *
 * It passes on each chunk of a body by itself, up to 11,000 of a read: chunks of one byte took 70 times their size, and eight
 * connections that sent them to `/healthz` held others for ten seconds. Small pieces of an event loop turn are joined, and tiny
 * ones are limited: beyond it the body's reader gets an `error` event with a Failure; without a reader the connection is closed.
 */
export function requestClass({ clock, isFull }: RequestClassOptions): typeof IncomingMessage {
  const tinyPieces = new WeakMap<Socket, TinyPieces>();
  const tinyPiecesOf = (socket: Socket): TinyPieces => {
    let pieces = tinyPieces.get(socket);
    if (pieces === undefined) tinyPieces.set(socket, (pieces = new TinyPieces(clock)));
    return pieces;
  };

  return class extends IncomingMessage {
    readonly #isRefused: boolean;
    #isUpgrade = false;
    #count = 0;
    /** Small pieces of this turn. */
    #small: Buffer[] | undefined;
    #smallBytes = 0;
    #tiny: TinyPieces | undefined;
    /** There were too many small pieces: more are dropped. */
    #isTooFine = false;

    constructor(socket: Socket) {
      super(socket);
      this.#isRefused = isFull(socket);
    }

    get upgrade(): boolean {
      return this.#isRefused || this.#isUpgrade;
    }

    /** Node decides: true for CONNECT alone. Its constructor sets it too, before this class has fields. */
    set upgrade(isUpgrade: boolean) {
      if (#isUpgrade in this) this.#isUpgrade = isUpgrade;
    }

    /**
     * Node emits the error of a closed connection two ticks later if the request has a listener after the first one. A request that waits
     * for earlier responses is left by its reader between the two, and an error without a listener would end the process.
     */
    override emit(...event: Parameters<IncomingMessage["emit"]>): boolean {
      return (event[0] !== "error" || this.listenerCount("error") > 0) && super.emit(...event);
    }

    /** The parser calls it for each piece of the body, with null at the end; false stops reading from the connection. */
    override push(piece: Buffer | null): boolean {
      this.#count += 1;
      if (piece !== null && this.#count > PASSED_PIECES && piece.length < JOINED_BELOW_BYTES) return this.#join(piece);
      this.#passJoined();
      return super.push(piece);
    }

    #join(piece: Buffer): boolean {
      if (this.#isTooFine) return false;
      if (piece.length < TINY_BYTES && !(this.#tiny ??= tinyPiecesOf(this.socket)).take()) return this.#refuse();
      if (this.#small === undefined) {
        this.#small = [];
        // After the parser is through with what was read; ticks run between two pieces.
        setImmediate(() => this.#passJoined());
      }
      this.#small.push(piece);
      this.#smallBytes += piece.length;
      return this.readableLength + this.#smallBytes < this.readableHighWaterMark;
    }

    #passJoined(): void {
      if (this.#small === undefined) return;
      const joined = Buffer.concat(this.#small, this.#smallBytes);
      this.#small = undefined;
      this.#smallBytes = 0;
      super.push(joined);
    }

    #refuse(): false {
      this.#isTooFine = true;
      const isRead = this.listenerCount("error") > 0;
      if (isRead) this.emit("error", new Failure("invalid_request", TOO_FINE));
      else this.socket.destroy();
      return false;
    }
  };
}

const TOO_FINE = `The request body comes in too many chunks of less than ${TINY_BYTES} bytes; send larger ones.`;

/** Counts the tiny pieces of a connection. */
class TinyPieces {
  readonly #clock: Pick<Clock, "monotonic">;
  #sinceMs: number;
  #count = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonic();
  }

  /** Counts one; false when it is one too many. */
  take(): boolean {
    this.#count += 1;
    if (this.#count <= TINY_PER_SECOND) return true;
    const nowMs = this.#clock.monotonic();
    if (nowMs < this.#sinceMs + 1000) return false;
    this.#sinceMs = nowMs;
    this.#count = 1;
    return true;
  }
}

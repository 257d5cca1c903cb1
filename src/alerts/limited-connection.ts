import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { lookupHost } from "../net/host-lookup.ts";

/** A TCP connection that fails when more than `maxBytes` arrive. TLS reads through it, so that its bytes count too. */
export class LimitedConnection extends Duplex {
  readonly #socket: Socket;
  #left: number;

  constructor({ host, port, maxBytes }: { readonly host: string; readonly port: number; readonly maxBytes: number }) {
    super();
    this.#left = maxBytes;
    this.#socket = connect({ host, port, lookup: lookupHost })
      .on("data", (bytes: Buffer) => this.#take(bytes))
      .on("end", () => this.push(null))
      .on("error", (error) => this.destroy(error))
      .on("close", () => this.destroy());
  }

  /** Whether more than `maxBytes` have arrived. */
  get isFull(): boolean {
    return this.#left < 0;
  }

  /** Stands for `Socket.setTimeout` and does nothing: the caller has a time limit of its own. */
  setTimeout(): this {
    return this;
  }

  #take(bytes: Buffer): void {
    this.#left -= bytes.length;
    if (this.isFull) this.destroy(new Error("the server sent more bytes than are accepted"));
    else if (!this.push(bytes)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

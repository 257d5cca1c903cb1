import type { Socket } from "node:net";
import { OF_PROVIDER, TlsAllowance } from "../../net/tls-allowance.ts";
import { ResponseError } from "./response-error.ts";

/** The handle of a TLS socket, and the one below it, for which Node has no public name. */
interface TlsHandle {
  readonly _parent?: { readonly bytesRead?: number } | null;
}

/**
 * Bounds the TLS records without data that a provider sends, such as KeyUpdates and tickets: no limit of HTTP knows of them, and the event
 * loop reads up to 2 MB of a socket in one turn.
 */
export class TlsRecords {
  readonly #socket: Socket;
  readonly #allowance: TlsAllowance;

  private constructor(socket: Socket, encrypted: number) {
    this.#socket = socket;
    this.#allowance = new TlsAllowance(OF_PROVIDER, { encrypted, data: socket.bytesRead });
  }

  /** Those of a socket whose handshake is finished; undefined without TLS, and where Node does not count them. */
  static of(socket: Socket): TlsRecords | undefined {
    const encrypted = encryptedBytesOf(socket);
    return encrypted === undefined ? undefined : new TlsRecords(socket, encrypted);
  }

  /** Counts the records since the last check. Throws a `ResponseError` beyond the allowance. */
  check(elapsedMs: number): void {
    const encrypted = encryptedBytesOf(this.#socket);
    if (encrypted === undefined || !this.#allowance.isExceeded({ encrypted, data: this.#socket.bytesRead }, elapsedMs))
      return;
    throw new ResponseError("The TLS records of the connection are more than its data accounts for.");
  }
}

function encryptedBytesOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { readonly _handle?: TlsHandle | null };
  return handle?._parent?.bytesRead;
}

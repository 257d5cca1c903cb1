import { isIP, type Socket } from "node:net";
import { networkOf } from "../access/address.ts";

/** Connections that may be open at the same time. */
export interface ConnectionLimits {
  /** Of all listeners of the process together. */
  readonly max: number;
  /** Of one address; for IPv6, of one /64. Infinity for any number. */
  readonly maxPerAddress: number;
  /** Whether an address, such as that of a reverse proxy, may have any number. */
  readonly isExempt: (address: string) => boolean;
}

/**
 * The open connections of all listeners. What is beyond the limits is closed before anything is read, so that descriptors
 * are left for the database and providers; a connection that has sent nothing yet makes room for a new one.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** All that are open, and whose they are. */
  readonly #peers = new Map<Socket, string>();
  readonly #counts = new Map<string, number>();
  /** In the order in which they came. Those that have sent something since are taken out when room is needed. */
  readonly #silent = new Set<Socket>();
  #refused = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Connections closed for the limits since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Counts a connection until it closes. One beyond the limits is closed: then false. */
  add(socket: Socket): boolean {
    const { max, maxPerAddress, isExempt } = this.#limits;
    const address = socket.remoteAddress ?? "";
    const peer = isIP(address) === 6 && !address.startsWith("::ffff:") ? networkOf(address) : address;
    const count = this.#counts.get(peer) ?? 0;
    const isOverItsShare = count >= maxPerAddress && !isExempt(address);
    if (isOverItsShare || (this.#peers.size >= max && !this.#makeRoom())) {
      this.#refused += 1;
      socket.destroy();
      return false;
    }
    this.#counts.set(peer, count + 1);
    this.#peers.set(socket, peer);
    this.#silent.add(socket);
    socket.once("close", () => this.#forget(socket));
    return true;
  }

  /** Closes the oldest connection that has sent nothing; false when there is none. */
  #makeRoom(): boolean {
    for (const socket of this.#silent) {
      this.#silent.delete(socket);
      if (socket.bytesRead > 0) continue;
      this.#refused += 1;
      this.#forget(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  #forget(socket: Socket): void {
    const peer = this.#peers.get(socket);
    if (peer === undefined) return;
    this.#peers.delete(socket);
    this.#silent.delete(socket);
    const left = this.#counts.get(peer)! - 1;
    if (left === 0) this.#counts.delete(peer);
    else this.#counts.set(peer, left);
  }
}

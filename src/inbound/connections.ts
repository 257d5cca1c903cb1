import { isIP, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { subnetOf } from "../access/address.ts";

/** Limits of open connections. */
export interface ConnectionLimits {
  /** Limit of all listeners of the process together. */
  readonly max: number;
  /** Limit of one address; for IPv6 of one /64. Infinity: none. */
  readonly maxPerAddress: number;
  /**
   * The client to which an address belongs; undefined for an address without a limit, such as a proxy's, behind which are
   * many clients.
   */
  readonly clientOf: (address: string) => string | undefined;
}

/**
 * Connections that the kernel holds until they are accepted. Beyond Node's default of 511 it drops them silently, and a client tries
 * again after one, three and seven seconds. Systems lower it to their own limit (Linux: `net.core.somaxconn`, 4,096).
 */
export const LISTEN_BACKLOG = 4_096;

/** Longest turn of the event loop that is quiet, and limit of turns to wait for one. */
const QUIET_MS = 1;
const MAX_TURNS = 100;

/**
 * Resolves after a short turn of the event loop. To be awaited before a listener closes, which resets the connections that the kernel
 * holds, with requests that a proxy has sent: a turn accepts all of them, and during a short one few new ones arrive.
 */
export async function quietTurn(): Promise<void> {
  await nextTurn();
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const beganMs = performance.now();
    await nextTurn();
    if (performance.now() - beganMs < QUIET_MS) return;
  }
}

const IDLE_CLOSED_EVERY_MS = 1_000;

/**
 * Counts the open connections of all listeners. Connections beyond the limits are closed before anything is read, which keeps
 * descriptors for the database and providers. At the limit, silent and idle connections are closed in favour of new ones.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** Open connections, with the address that they count for. */
  readonly #peers = new Map<Socket, string>();
  readonly #counts = new Map<string, number>();
  /** Connections that had sent nothing when last checked, oldest first. */
  readonly #silent = new Set<Socket>();
  readonly #idleClosers = new Set<() => void>();
  #idleClosedMs = -Infinity;
  #refused = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Connections closed because of the limits since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Counts a connection until it closes. Closes a connection beyond the limits and returns false. */
  add(socket: Socket): boolean {
    const { max, maxPerAddress } = this.#limits;
    const address = socket.remoteAddress ?? "";
    const peer = peerOf(address);
    const count = this.#counts.get(peer) ?? 0;
    const isOverItsShare = count >= maxPerAddress && this.clientOf(address) !== undefined;
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

  /**
   * The client to which an address belongs; undefined for an address without a limit, such as a proxy's, behind which are
   * many clients.
   */
  clientOf(address: string): string | undefined {
    return this.#limits.clientOf(address);
  }

  /** Registers a function that closes idle connections of a listener. Called at the limit. */
  onFull(closeIdle: () => void): void {
    this.#idleClosers.add(closeIdle);
  }

  /** Closes the oldest silent connection, else all idle ones; false when there is none. */
  #makeRoom(): boolean {
    return this.#closeSilent() || this.#closeIdle();
  }

  #closeSilent(): boolean {
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

  /** Iterates over all connections, so at most once a second. */
  #closeIdle(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#idleClosedMs < IDLE_CLOSED_EVERY_MS) return false;
    this.#idleClosedMs = nowMs;
    for (const closeIdle of this.#idleClosers) closeIdle();
    for (const socket of this.#peers.keys()) if (socket.destroyed) this.#forget(socket);
    return this.#peers.size < this.#limits.max;
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

/** The address; for IPv6 its /64. */
export function peerOf(address: string): string {
  return isIP(address) === 6 && !address.startsWith("::ffff:") ? subnetOf(address) : address;
}

import type { Socket } from "node:net";

/** Time of an event loop turn after which connections of strangers are not read before the next one. */
const TURN_MS = 10;

/** What Node's HTTP/2 reads a connection from. It has no public method to stop reading. */
interface Source {
  /** Bytes that are being written. Meanwhile Node itself stops reading, and starts again. */
  readonly writeQueueSize: number;
  readStart(): void;
  readStop(): void;
}

/**
 * Limits the time in an event loop turn for calls of strangers: connections on which no call with a valid key has ended yet. Node reads
 * all connections in one turn, and each may have sent a hundred calls: with some hundred connections a turn took seconds. After
 * TURN_MS no more connections of strangers are read in a turn. Those that were read are not read in the next turn.
 */
export class StrangerTurns {
  readonly #strangers = new Set<Socket>();
  readonly #stopped = new Set<Socket>();
  /** Connections with calls that began in this turn. */
  readonly #read = new Set<Socket>();
  /** When the first of these calls began. */
  #sinceMs = 0;
  #isOver = false;
  #isArmed = false;

  add(socket: Socket): void {
    this.#strangers.add(socket);
  }

  /** To be called when the connection is closed, or not of a stranger. */
  remove(socket: Socket): void {
    this.#strangers.delete(socket);
    this.#read.delete(socket);
    if (this.#stopped.delete(socket)) sourceOf(socket)?.readStart();
  }

  /** To be called when a call of the connection begins. */
  began(socket: Socket): void {
    if (!this.#strangers.has(socket)) return;
    if (this.#read.size === 0) this.#sinceMs = performance.now();
    this.#read.add(socket);
    this.#arm();
    if (this.#isOver || performance.now() - this.#sinceMs <= TURN_MS) return;
    this.#isOver = true;
    for (const stranger of this.#strangers) this.#stop(stranger);
  }

  #stop(socket: Socket): void {
    const source = sourceOf(socket);
    if (source?.writeQueueSize !== 0) return;
    source.readStop();
    this.#stopped.add(socket);
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isArmed = this.#isOver = false;
    for (const socket of this.#stopped) {
      if (this.#read.has(socket)) continue;
      this.#stopped.delete(socket);
      sourceOf(socket)?.readStart();
    }
    this.#read.clear();
    if (this.#stopped.size > 0) this.#arm();
  }
}

function sourceOf(socket: Socket): Source | undefined {
  return (socket as unknown as { readonly _handle: Source | null })._handle ?? undefined;
}

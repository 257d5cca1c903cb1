import type { AnswerMemory, Shares, WaitingHold } from "./answer-memory.ts";

/** The owner of an answer, and the functions that end the answer early. */
export interface AnswerOwner {
  readonly keyFamilyId: string;
  readonly accountId: string;
  /** Identity of the provider that sends it. */
  readonly provider: object;
  /** Stops reading from the provider, which was too slow. */
  readonly abandon: () => void;
  /** Ends the call, because its caller was too slow. */
  readonly leave: () => void;
}

/** Bytes are counted in steps of this size. */
const STEP_BYTES = 1024 * 1024;

/** While other answers wait: milliseconds in which the provider must send the bytes of an answer, and the caller must read them. */
export const PATIENCE_MS = 10_000;

/** The bytes of one answer of a provider. */
export class AnswerHold {
  readonly owner: AnswerOwner;
  /** Set by `AnswerMemory`: the counted bytes, and the shares in which they count; undefined without bytes. */
  bytes = 0;
  shares: Shares | undefined;
  /** Set by `AnswerMemory` while the hold waits for more bytes. */
  waiting: Pick<WaitingHold, "end"> | undefined;
  readonly #memory: AnswerMemory;
  readonly #waits: ((until: Promise<void>) => void) | undefined;
  /** Bytes of parts that were read and are kept. */
  #kept = 0;
  /** Bytes of the unfinished part at the last `take`. */
  #partBytes = 0;
  #isKept = false;
  #isRead = false;
  #isSent = false;
  #isEmitting = false;
  #isPaused = false;
  /** Time left for progress. */
  #leftMs = PATIENCE_MS;

  constructor(memory: AnswerMemory, owner: AnswerOwner, waits?: (until: Promise<void>) => void) {
    this.#memory = memory;
    this.owner = owner;
    this.#waits = waits;
  }

  /**
   * Counts the bytes read so far of an unfinished part. Returns a promise when they do not fit; do not read or count meanwhile. It
   * resolves when the bytes fit, or after `read` or `drop`, and rejects with the reason of the signal.
   */
  take(bytes: number, signal: AbortSignal): Promise<void> | undefined {
    const read = Math.max(bytes - this.#partBytes, 0);
    this.#partBytes = bytes;
    const more = this.#kept + bytes - this.bytes;
    const waiting = more > 0 ? this.#memory.take(this, toSteps(more), signal) : undefined;
    this.moved(read);
    if (waiting !== undefined) this.#waits?.(waiting);
    return waiting;
  }

  /** Notes progress: bytes came from the provider, or the caller has read them. */
  moved(bytes: number): void {
    if (this.bytes === 0) return;
    this.#leftMs = Math.min(this.#leftMs + (PATIENCE_MS * bytes) / this.bytes, PATIENCE_MS);
  }

  /** Call it when reading stops until a turn of the event loop. The time until `resume` does not count as a delay. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Call it when reading goes on after `pause`. */
  resume(): void {
    this.#isPaused = false;
  }

  /** Call it before a part is emitted: a delay is now the caller's, until `passed`. */
  emitting(): void {
    this.#isEmitting = true;
  }

  /** Call it after a part was emitted: its bytes are released, unless the answer is kept. */
  passed(): void {
    this.#isEmitting = false;
    if (!this.#isKept || this.#isSent) return this.#free();
    this.#kept += this.#partBytes;
    this.#partBytes = 0;
    this.#trim();
  }

  /** Releases all bytes, kept ones too. */
  drop(): void {
    this.#free();
  }

  /** Keeps all read bytes counted until `sent`. */
  keep(): void {
    this.#isKept = true;
  }

  /** Call it when nothing more will be read of the answer. */
  read(): void {
    this.#isRead = true;
    this.#isPaused = false;
    this.#leftMs = PATIENCE_MS;
    this.waiting?.end();
    if (this.#isSent) this.#free();
    else this.#trim();
  }

  /** Call it when the caller has its answer or has disconnected. The provider may still be read for its token count. */
  sent(): void {
    this.#isSent = true;
    if (this.#isRead) this.#free();
  }

  /**
   * Whether the answer is too slow: it has PATIENCE_MS to start with, and progress of all its bytes earns PATIENCE_MS again, so a tenth
   * of its bytes per second keeps it in time. Waits for memory or for a turn do not count.
   */
  get isLate(): boolean {
    return this.#leftMs === 0 && this.waiting === undefined && !this.#isPaused;
  }

  /** Called by `AnswerMemory` when `ms` have passed. */
  tick(ms: number): void {
    if (this.waiting === undefined && !this.#isPaused) this.#leftMs = Math.max(this.#leftMs - ms, 0);
  }

  /** Called by `AnswerMemory`, which has released the bytes: ends the answer. */
  end(): void {
    this.#kept = 0;
    if (this.#isRead || this.#isEmitting) this.owner.leave();
    else this.owner.abandon();
  }

  /** Releases the bytes of its turn that were not read. */
  #trim(): void {
    this.#memory.trim(this, toSteps(this.#kept + this.#partBytes));
  }

  #free(): void {
    this.#kept = 0;
    this.#partBytes = 0;
    this.#leftMs = PATIENCE_MS;
    this.#memory.free(this);
  }
}

function toSteps(bytes: number): number {
  return Math.ceil(bytes / STEP_BYTES) * STEP_BYTES;
}

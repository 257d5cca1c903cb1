import type { AnswerMemory, Shares, WaitingHold } from "./answer-memory.ts";

/** Whose answer it is, and how it ends before its time. */
export interface AnswerOwner {
  readonly keyFamilyId: string;
  readonly accountId: string;
  /** Identity of the provider that sends it. */
  readonly provider: object;
  /** Reads nothing more of the provider, which was too slow. */
  readonly abandon: () => void;
  /** Ends the call, whose caller was too slow. */
  readonly leave: () => void;
}

/** Bytes are counted in steps of this size. */
const STEP_BYTES = 1024 * 1024;

/** Time in ms in which all bytes of an answer have to come, and in which the caller has to read them, while others wait. */
export const PATIENCE_MS = 10_000;

/** The bytes of one answer of a provider. */
export class AnswerHold {
  readonly owner: AnswerOwner;
  /** Of `AnswerMemory`: counted bytes, and the shares in which they count, while there are some. */
  bytes = 0;
  shares: Shares | undefined;
  /** Of `AnswerMemory`: set while it waits for more bytes. */
  waiting: Pick<WaitingHold, "end"> | undefined;
  readonly #memory: AnswerMemory;
  readonly #waits: ((until: Promise<void>) => void) | undefined;
  /** Bytes of parts that were read and are kept. */
  #kept = 0;
  /** Bytes of the unfinished part when it was last asked for. */
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
   * Counts the bytes read of an unfinished part. Returns a promise when they do not fit, which resolves when they do, or when
   * nothing more is read; nothing is to be read or counted meanwhile. It rejects with the reason of the signal.
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

  /** Some bytes have come from the provider, or the caller has read them. */
  moved(bytes: number): void {
    if (this.bytes === 0) return;
    this.#leftMs = Math.min(this.#leftMs + (PATIENCE_MS * bytes) / this.bytes, PATIENCE_MS);
  }

  /** This process reads nothing of it before the turn that it waits for. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Its turn has come. */
  resume(): void {
    this.#isPaused = false;
  }

  /** What was read is given to the caller, who may not have room for it. */
  emitting(): void {
    this.#isEmitting = true;
  }

  /** What was read is no longer in memory, unless it is kept. */
  passed(): void {
    this.#isEmitting = false;
    if (!this.#isKept || this.#isSent) return this.#free();
    this.#kept += this.#partBytes;
    this.#partBytes = 0;
    this.#trim();
  }

  /** What was read is no longer in memory, nor what is kept. */
  drop(): void {
    this.#free();
  }

  /** What is read of the answer is kept until it is sent. */
  keep(): void {
    this.#isKept = true;
  }

  /** Nothing more is read. */
  read(): void {
    this.#isRead = true;
    this.#isPaused = false;
    this.#leftMs = PATIENCE_MS;
    this.waiting?.end();
    if (this.#isSent) this.#free();
    else this.#trim();
  }

  /** The caller has its answer, or is gone; a provider may still be read, for its count of tokens. */
  sent(): void {
    this.#isSent = true;
    if (this.#isRead) this.#free();
  }

  /**
   * Whether a tenth of its bytes in each second (PATIENCE_MS) did not come from the provider, or were not read by the caller, for so long
   * that PATIENCE_MS are over. Time in which it waits for memory or for a turn does not count.
   */
  get isLate(): boolean {
    return this.#leftMs === 0 && this.waiting === undefined && !this.#isPaused;
  }

  /** Of `AnswerMemory`: some time has passed. */
  tick(ms: number): void {
    if (this.waiting === undefined && !this.#isPaused) this.#leftMs = Math.max(this.#leftMs - ms, 0);
  }

  /** Of `AnswerMemory`: ends the answer, whose bytes are no longer counted. */
  end(): void {
    this.#kept = 0;
    if (this.#isRead || this.#isEmitting) this.owner.leave();
    else this.owner.abandon();
  }

  /** Releases what its turn gave beyond what was read. */
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

import { FairQueue, type Waiter } from "./fair-queue.ts";

/** Limits of the bytes of large answers in memory, each at least that of its part. */
export interface AnswerLimits {
  readonly key: number;
  readonly account: number;
  readonly process: number;
}

/** Whose answer it is. */
export interface AnswerOwner {
  readonly keyFamilyId: string;
  readonly accountId: string;
}

/** Bytes are counted in steps of this size. */
const STEP_BYTES = 1024 * 1024;

/** The bytes of a key's answers, of an account's keys or of all accounts. */
class Share {
  readonly id: string;
  readonly max: number;
  readonly whole: Share | undefined;
  bytes = 0;
  /** Holds of a key, or shares of an account or of the process. */
  parts = 0;

  constructor(id: string, max: number, whole?: Share) {
    this.id = id;
    this.max = max;
    this.whole = whole;
  }

  /** Bytes that count for the whole: what a key has beyond its own limit takes nothing from other keys. */
  get counted(): number {
    return Math.min(this.bytes, this.max);
  }

  add(bytes: number): void {
    const before = this.counted;
    this.bytes += bytes;
    this.whole?.add(this.counted - before);
  }
}

interface WaitingHold extends Waiter {
  readonly hold: AnswerHold;
  readonly bytes: number;
  /** Resolves its promise; it is no longer queued. */
  readonly end: () => void;
}

/**
 * Bounds the bytes of large answers in memory, from their reading until their callers have them: for a key, for an account and for the
 * process. An answer that does not fit waits, and its provider is not read meanwhile; keys have turns.
 *
 * Nobody knows how large an answer becomes, so several may have begun that do not fit together. An answer may therefore exceed a limit
 * while the others are within it. No deadlock: of the unfinished answers that have exceeded one, that which was the last to do so may
 * go on to its end, because the others have grown within the limits since, if at all. What it held is then free, and the same holds
 * for the one before it. An answer whose caller does not read it keeps its bytes, but it holds back other keys by no more than the
 * limit of its key, by which they may exceed that of the account, and other accounts likewise.
 */
export class AnswerMemory {
  readonly #limits: AnswerLimits;
  readonly #process: Share;
  readonly #accounts = new Map<string, Share>();
  readonly #keys = new Map<string, Share>();
  readonly #waiting = new FairQueue<WaitingHold>();

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
    this.#process = new Share("", limits.process);
  }

  /** Bytes of large answers in memory. */
  get bytes(): number {
    let bytes = 0;
    for (const key of this.#keys.values()) bytes += key.bytes;
    return bytes;
  }

  /** Number of answers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Begins an answer, with no bytes. `waits` is called when it has to wait. */
  open(owner: AnswerOwner, waits?: (until: Promise<void>) => void): AnswerHold {
    return new AnswerHold(this, owner, waits);
  }

  /** Counts the bytes, or waits for them. Called by holds. */
  take(hold: AnswerHold, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    hold.share ??= this.#shareOf(hold.owner);
    if (fits(hold.share, hold.bytes, bytes)) {
      this.#add(hold, bytes);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        hold.waiting = undefined;
        this.#waiting.remove(waiting);
        signal.removeEventListener("abort", abort);
      };
      const abort = (): void => {
        leave();
        reject(signal.reason);
      };
      const end = (): void => {
        leave();
        resolve();
      };
      const waiting = { key: hold.owner.keyFamilyId, hold, bytes, end };
      signal.addEventListener("abort", abort, { once: true });
      hold.waiting = waiting;
      this.#waiting.add(waiting);
    });
  }

  /** Releases all bytes of a hold, which waits no longer. Called by holds. */
  free(hold: AnswerHold): void {
    hold.waiting?.end();
    const { share } = hold;
    if (share === undefined) return;
    share.add(-hold.bytes);
    hold.bytes = 0;
    hold.share = undefined;
    this.#forget(share);
    const isNext = ({ hold: { share: key, bytes: own }, bytes }: WaitingHold): boolean => fits(key!, own, bytes);
    for (let next = this.#waiting.nextOfAny(isNext); next !== undefined; next = this.#waiting.nextOfAny(isNext)) {
      this.#add(next.hold, next.bytes);
      next.end();
    }
  }

  #add(hold: AnswerHold, bytes: number): void {
    hold.bytes += bytes;
    hold.share!.add(bytes);
  }

  #shareOf({ keyFamilyId, accountId }: AnswerOwner): Share {
    let key = this.#keys.get(keyFamilyId);
    if (key === undefined) {
      let account = this.#accounts.get(accountId);
      if (account === undefined)
        this.#accounts.set(accountId, (account = new Share(accountId, this.#limits.account, this.#process)));
      account.parts += 1;
      this.#keys.set(keyFamilyId, (key = new Share(keyFamilyId, this.#limits.key, account)));
    }
    key.parts += 1;
    return key;
  }

  #forget(key: Share): void {
    key.parts -= 1;
    if (key.parts > 0) return;
    this.#keys.delete(key.id);
    const account = key.whole!;
    account.parts -= 1;
    if (account.parts === 0) this.#accounts.delete(account.id);
  }
}

/** Whether `bytes` more fit for an answer with `own` bytes, or all other answers are within the limits. */
function fits(key: Share, own: number, bytes: number): boolean {
  let [added, part, slack] = [bytes, own, 0];
  for (let share: Share | undefined = key; share !== undefined && added > 0; share = share.whole) {
    if (share.bytes + added > share.max && share.bytes - part > share.max + slack) return false;
    part = share.counted;
    added = Math.min(share.bytes + added, share.max) - part;
    slack = share.max;
  }
  return true;
}

/** The bytes of one answer of a provider. */
export class AnswerHold {
  readonly owner: AnswerOwner;
  /** Of `AnswerMemory`: counted bytes, and the share in which they count, while there are some. */
  bytes = 0;
  share: Share | undefined;
  /** Of `AnswerMemory`: set while it waits for more bytes. */
  waiting: Pick<WaitingHold, "end"> | undefined;
  readonly #memory: AnswerMemory;
  readonly #waits: ((until: Promise<void>) => void) | undefined;
  /** Bytes of parts that are read and kept. */
  #kept = 0;
  #isKept = false;
  #isRead = false;
  #isSent = false;

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
    const more = this.#kept + bytes - this.bytes;
    if (more <= 0) return undefined;
    const waiting = this.#memory.take(this, Math.ceil(more / STEP_BYTES) * STEP_BYTES, signal);
    if (waiting !== undefined) this.#waits?.(waiting);
    return waiting;
  }

  /** What was read is no longer in memory, unless it is kept. */
  passed(): void {
    if (this.#isKept && !this.#isSent) this.#kept = this.bytes;
    else this.#free();
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
    this.waiting?.end();
    if (this.#isSent) this.#free();
  }

  /** The caller has its answer, or is gone; a provider may still be read, for its count of tokens. */
  sent(): void {
    this.#isSent = true;
    if (this.#isRead) this.#free();
  }

  #free(): void {
    this.#kept = 0;
    this.#memory.free(this);
  }
}

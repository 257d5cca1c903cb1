import { AnswerHold, type AnswerOwner } from "./answer-hold.ts";

/** Limits of the bytes of large answers in memory, each at least that of a key. */
export interface AnswerLimits {
  readonly key: number;
  readonly account: number;
  readonly provider: number;
  readonly process: number;
}

/** The timers of a `Clock`. */
interface Timers {
  /** Calls `callback` once after `delayMs`. The returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Milliseconds between two checks of the progress of answers. A late check counts as one, so a blocked event loop counts less. */
const TICK_MS = 500;

/** Limit of the bytes that an answer gets in a turn. Most pictures are smaller. */
const MAX_TURN_BYTES = 16 * 1024 * 1024;

/** The bytes of the answers of a key, an account, a provider or the process. */
class Share {
  readonly max: number;
  bytes = 0;
  /** Number of holds that count in it. */
  holds = 0;
  /** `AnswerMemory.#turns` at the last grant in this share. */
  turn = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** Whether an answer with `own` bytes may get more: all other answers together are within the limit. */
  hasRoom(own: number): boolean {
    return this.bytes - own <= this.max;
  }
}

/** The shares in which an answer counts. */
export interface Shares {
  readonly key: Share;
  readonly account: Share;
  readonly provider: Share;
  readonly all: readonly Share[];
}

/** An answer that waits for more bytes. */
export interface WaitingHold {
  readonly hold: AnswerHold;
  /** Bytes that it gets in its turn. */
  readonly bytes: number;
  readonly shares: Shares;
  /** Resolves its promise; it is no longer queued. */
  readonly end: () => void;
}

/**
 * Bounds the bytes of large answers in memory, from their reading until their callers have them. There is a limit for a key, an
 * account, a provider and the process. The size of an answer is not known in advance, so an answer is read as long as all other
 * answers together are within each of these limits: the process holds at most its limit and one answer. Otherwise the answer waits,
 * and its provider is not read. Waiting answers take turns: first by provider, then by account, then by key, the least recently
 * granted first. A turn grants MAX_TURN_BYTES, at most the limit of a key, so that most answers need one.
 *
 * No deadlock: consider the unfinished answers that exceeded the limit of a share. The last of them may always continue to its end,
 * because the others have not grown in that share since, and are within the limits in other shares. Its bytes are then free, and
 * the same is true for the answer before it.
 *
 * A provider that stalls, or a caller that does not read, would hold memory for minutes. Such answers end while others need the
 * memory; see `AnswerHold.isLate`.
 */
export class AnswerMemory {
  readonly #timers: Timers;
  readonly #limits: AnswerLimits;
  readonly #process: Share;
  /** Bytes that a waiting answer gets in its turn. */
  readonly #turnBytes: number;
  readonly #keys = new Map<string, Share>();
  readonly #accounts = new Map<string, Share>();
  readonly #providers = new Map<object, Share>();
  readonly #waiting = new Set<WaitingHold>();
  /** Holds with bytes. */
  readonly #held = new Set<AnswerHold>();
  #turns = 0;
  #ended = 0;
  #cancelTick: (() => void) | undefined;

  constructor(limits: AnswerLimits, timers: Timers) {
    this.#limits = limits;
    this.#timers = timers;
    this.#process = new Share(limits.process);
    this.#turnBytes = Math.min(limits.key, MAX_TURN_BYTES);
  }

  /** Bytes of large answers in memory. */
  get bytes(): number {
    return this.#process.bytes;
  }

  /** Number of answers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Number of answers that ended because others needed their memory. */
  get ended(): number {
    return this.#ended;
  }

  /** Begins an answer without bytes. `waits` is called when the answer has to wait. */
  open(owner: AnswerOwner, waits?: (until: Promise<void>) => void): AnswerHold {
    return new AnswerHold(this, owner, waits);
  }

  /** Counts the bytes, or returns a promise that resolves once they are granted. Called by holds. */
  take(hold: AnswerHold, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    const shares = (hold.shares ??= this.#sharesOf(hold.owner));
    if (hasRoom(shares, hold.bytes)) {
      this.#add(hold, shares, bytes);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        hold.waiting = undefined;
        this.#waiting.delete(waiting);
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
      const waiting = { hold, bytes: Math.max(bytes, this.#turnBytes), shares, end };
      signal.addEventListener("abort", abort, { once: true });
      hold.waiting = waiting;
      this.#waiting.add(waiting);
      this.#endLate();
    });
  }

  /** Releases the bytes of a hold beyond `toBytes`. Called by holds. */
  trim(hold: AnswerHold, toBytes: number): void {
    const more = hold.bytes - toBytes;
    if (hold.shares === undefined || more <= 0) return;
    hold.bytes -= more;
    for (const share of hold.shares.all) share.bytes -= more;
    this.#grant();
  }

  /** Releases all bytes of a hold and ends its wait. Called by holds. */
  free(hold: AnswerHold): void {
    this.#release(hold);
    this.#grant();
  }

  #add(hold: AnswerHold, { all }: Shares, bytes: number): void {
    hold.bytes += bytes;
    this.#turns += 1;
    for (const share of all) {
      share.bytes += bytes;
      share.turn = this.#turns;
    }
    this.#held.add(hold);
    this.#arm();
  }

  #release(hold: AnswerHold): void {
    hold.waiting?.end();
    const { shares, bytes } = hold;
    if (shares === undefined) return;
    hold.bytes = 0;
    hold.shares = undefined;
    this.#held.delete(hold);
    for (const share of shares.all) {
      share.bytes -= bytes;
      share.holds -= 1;
    }
    const { keyFamilyId, accountId, provider } = hold.owner;
    if (shares.key.holds === 0) this.#keys.delete(keyFamilyId);
    if (shares.account.holds === 0) this.#accounts.delete(accountId);
    if (shares.provider.holds === 0) this.#providers.delete(provider);
    if (this.#held.size === 0) this.#disarm();
  }

  /** Grants free bytes to waiting holds, in turn. */
  #grant(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#add(next.hold, next.shares, next.bytes);
      next.end();
    }
  }

  /** The first waiting hold, in turn, for which all its shares have room. */
  #next(): WaitingHold | undefined {
    let first: WaitingHold | undefined;
    for (const waiting of this.#waiting) {
      if (!hasRoom(waiting.shares, waiting.hold.bytes)) continue;
      if (first === undefined || byTurn(waiting, first) < 0) first = waiting;
    }
    return first;
  }

  /** Ends late answers that block waiting ones, until the waiting ones have room. */
  #endLate(): void {
    if (![...this.#held].some(({ isLate }) => isLate)) return;
    for (const waiting of [...this.#waiting].toSorted(byTurn)) {
      for (let late = this.#lateBefore(waiting); late !== undefined; late = this.#lateBefore(waiting)) {
        this.#ended += 1;
        this.#release(late);
        late.end();
      }
      this.#grant();
    }
  }

  /** Of the late answers that block a waiting one: that of the account with most bytes, the largest first. */
  #lateBefore({ hold, shares }: WaitingHold): AnswerHold | undefined {
    // The end of another answer may have granted the bytes.
    if (hold.waiting === undefined) return undefined;
    const full = shares.all.filter((share) => !share.hasRoom(hold.bytes));
    const late = [...this.#held].filter(
      (other) => other.isLate && !isOfSame(other, hold) && full.some((share) => other.shares!.all.includes(share)),
    );
    const accountBytes = (one: AnswerHold): number => one.shares!.account.bytes;
    return late.toSorted((one, other) => accountBytes(other) - accountBytes(one) || other.bytes - one.bytes)[0];
  }

  /** Checks the progress of all answers in memory every TICK_MS, while there are any. */
  #arm(): void {
    this.#cancelTick ??= this.#timers.after(TICK_MS, () => {
      this.#cancelTick = undefined;
      for (const hold of this.#held) hold.tick(TICK_MS);
      this.#endLate();
      if (this.#held.size > 0) this.#arm();
    });
  }

  #disarm(): void {
    this.#cancelTick?.();
    this.#cancelTick = undefined;
  }

  #sharesOf({ keyFamilyId, accountId, provider }: AnswerOwner): Shares {
    const key = shareOf(this.#keys, keyFamilyId, this.#limits.key);
    const account = shareOf(this.#accounts, accountId, this.#limits.account);
    const ofProvider = shareOf(this.#providers, provider, this.#limits.provider);
    const all = [key, account, ofProvider, this.#process];
    for (const share of all) share.holds += 1;
    return { key, account, provider: ofProvider, all };
  }
}

function shareOf<K>(shares: Map<K, Share>, id: K, max: number): Share {
  let share = shares.get(id);
  if (share === undefined) shares.set(id, (share = new Share(max)));
  return share;
}

function hasRoom({ all }: Shares, own: number): boolean {
  return all.every((share) => share.hasRoom(own));
}

/** Compares waiting holds by their turns. Returns 0 for equal ones, which a stable sort keeps in the order of waiting. */
function byTurn({ shares: one }: WaitingHold, { shares: other }: WaitingHold): number {
  return (
    one.provider.turn - other.provider.turn || one.account.turn - other.account.turn || one.key.turn - other.key.turn
  );
}

/** Whether two answers have the same key and provider. Such answers do not end each other; they wait within their time limits. */
function isOfSame({ owner: one }: AnswerHold, { owner: other }: AnswerHold): boolean {
  return one.keyFamilyId === other.keyFamilyId && one.provider === other.provider;
}

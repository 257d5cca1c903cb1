import type { Clock } from "../core/clock.ts";
import { deadlinePassed, type Failure } from "../core/failure.ts";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";
import type { Principal } from "../core/principal.ts";
import { InFlightLimit, WINDOW_MS } from "./in-flight-limit.ts";
import { noRoom, OverloadFailure, OVERLOAD_REASONS, type OverloadReason } from "./overload-failure.ts";
import {
  type Holders,
  Holding,
  type Largest,
  READ_MS_PER_BYTE,
  requireSize,
  Slot,
  type SlotPorts,
  UNLIMITED,
} from "./slot.ts";

export interface OverloadOptions {
  /** Limit of completions in flight or waiting in the process. */
  readonly maxCalls: number;
  /** Longest wait for a slot in milliseconds. */
  readonly maxWaitMs: number;
  /** Concurrency limit of accounts without their own; undefined: none. */
  readonly accountConcurrency: () => number | undefined;
  /**
   * Limits of bytes of request bodies that are being received: per key family, per account, in the process. `held`: limit of bytes
   * of all calls in flight; beyond it, keys that hold more than a small share are refused.
   */
  readonly arrivingBytes: {
    readonly key: number;
    readonly account: number;
    readonly process: number;
    readonly held: number;
  };
  /** Limits of one body and one expected answer, in bytes, where memory is small. Default: none. */
  readonly largest?: Largest;
}

export interface AdmissionPorts {
  readonly clock: Clock;
  /** Used share of the memory of the process: 0 to 1. */
  readonly memoryShare: () => number;
  /** Busy share (0 to 1) and delay in milliseconds of the event loop since the last call. */
  readonly load: () => { readonly busyShare: number; readonly delayMs: number };
  /** Calls back at the end of this event loop turn. */
  readonly atEndOfTurn: (callback: () => void) => void;
  /** Called when load shedding begins and ends, and when memory becomes short and sufficient again. */
  readonly changed: (change: OverloadChange) => void;
  /** Called with the time that a completion waited before it was admitted. Default: not called. */
  readonly waited?: (durationMs: number) => void;
}

export type OverloadChange =
  | { readonly what: "began"; readonly reason: OverloadReason }
  | { readonly what: "ended"; readonly refused: number }
  | { readonly what: "memory"; readonly isShort: boolean; readonly share: number };

/** Load of the process, for readiness and metrics. */
export interface OverloadState {
  readonly shedding: boolean;
  /** Completions waiting for a slot. */
  readonly waiting: number;
  /** Current limit of completions in flight. */
  readonly limit: number;
  readonly memoryIsShort: boolean;
  /** Refusals since the start. */
  readonly refused: Readonly<Record<OverloadReason, number>>;
}

/** Limit of completions that begin in one turn of the event loop. */
const BEGUN_PER_TURN = 32;
/**
 * Largest expected wait, as a share of `maxWaitMs`, while completions were refused in the last QUIET_MS. A standing overload fills
 * any queue, and a long queue only delays all answers. Without recent refusals the whole of `maxWaitMs` is allowed, for bursts.
 */
const SHEDDING_SHARE = 0.25;
/** A completion with at most this many turns before its own is not refused for its expected wait. */
const MIN_TURNS = 16;
/** Limit of a key's slots, and of a key's or account's calls, as a multiple of the free ones: one holder leaves a fifth to others. */
const FREE_SHARE = 4;
/** Share of the event loop for reading the requests of keys in debt, while other keys ask. */
const WORK_SHARE = 0.25;
/** Work beyond its share that puts a key in debt, in milliseconds. */
const DEBT_MS = 25;
/** Work for requests in one event loop turn, in milliseconds. The rest waits for the next turn. */
const WORK_PER_TURN_MS = 10;
/** Work charged for a request that its own limits refuse, in addition to its body, in milliseconds. */
const REFUSAL_MS = 1;
/** Bytes of a body in the buffers of the kernel and Node while its request waits. */
const UNREAD_BYTES = 64 * 1024;
/** Share of the limit of held bytes that a key may hold while the limit is exceeded. */
const SMALL_SHARE = 1 / 8;
/** Memory is short from SHORT on, until it falls below ENOUGH. */
const SHORT = 0.95;
const ENOUGH = 0.92;
/** Shedding ends after this time without a refusal. */
const QUIET_MS = 10_000;

/** A call that requests a slot. */
export interface EnteringCall {
  /** Aborts when the caller disconnects; the reason is a Failure. */
  readonly signal: AbortSignal;
  /** When the caller's deadline passes, by the clock's `monotonic`; undefined without one. */
  readonly expiresMs: number | undefined;
  end(reason: Failure): void;
}

type Caller = Pick<Principal, "keyFamilyId" | "accountId" | "limits" | "accountLimits">;

interface Waiting extends Waiter {
  readonly caller: Caller;
  readonly holders: Holders;
  readonly open: EnteringCall;
  readonly bytes: number | undefined;
  readonly isRead: boolean;
  readonly resolve: (slot: Slot) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
  readonly sinceMs: number;
}

/**
 * Admission control: gives slots to completions before their bodies are read. Completions beyond the limits of their key wait or
 * are refused (429); completions beyond the capacity of the process wait in a fair queue by key, or are refused (503).
 */
export class AdmissionControl {
  readonly #options: OverloadOptions;
  readonly #ports: AdmissionPorts;
  readonly #queue = new FairQueue<Waiting>();
  readonly #limit = new InFlightLimit();
  readonly #keys = new Map<string, Holding>();
  readonly #accounts = new Map<string, Holding>();
  readonly #process: Holding;
  readonly #largest: Largest;
  readonly #slotPorts: SlotPorts;
  /** For bodies that are read before their completion is queued (gRPC). */
  readonly #bodyPorts: SlotPorts;
  readonly #refused = { queue: 0, calls: 0, memory: 0 };
  #inFlight = 0;
  /** Calls in flight that do nothing, because they wait for memory or for the debt of their key. */
  #idle = 0;
  #begun = 0;
  #begunInTurn = 0;
  #workedInTurnMs = 0;
  /** Resolves at the end of the current window. */
  #windowEnd = Promise.withResolvers<void>();
  /** Number of completions that keys beyond their share may begin: half of those that have ended since. */
  #due = 0;
  #turnEnds = false;
  #memoryIsShort = false;
  #shedding: { lastMs: number; readonly before: number } | undefined;
  /** Cancels the timer of the current window; undefined while idle. */
  #stopLooking: (() => void) | undefined;

  constructor(options: OverloadOptions, ports: AdmissionPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#process = new Holding(options.arrivingBytes.process);
    this.#largest = options.largest ?? UNLIMITED;
    this.#slotPorts = {
      clock: ports.clock,
      largest: this.#largest,
      noRoom: (holders, bytes, what) => this.#noRoomFor(holders, bytes, what),
      beforeWork: (slot) => this.beforeWork(slot),
      worked: (ms) => {
        this.#workedInTurnMs += ms;
      },
      idle: (change) => {
        this.#idle += change;
        if (change > 0 && this.#queue.size > 0) this.#armTurn();
      },
      ended: this.#ended,
    };
    this.#bodyPorts = { ...this.#slotPorts, idle: () => undefined, ended: () => undefined };
  }

  /**
   * Returns a slot for a completion with a body of `bytes` (undefined: not declared), at once or in the turn of its key.
   * Throws `rate_limited` for the limits of its key or account, `overloaded` for those of the process, `request_too_large` for a body
   * that it has no memory for, and the reason of a call that ends first. A body that is already in memory (gRPC) counts as arriving while the call waits.
   */
  enter(
    caller: Caller,
    open: EnteringCall,
    { bytes, isRead = false }: { readonly bytes: number | undefined; readonly isRead?: boolean },
  ): Slot | Promise<Slot> {
    this.#endIfExpired(open);
    if (open.signal.aborted) throw open.signal.reason;
    requireSize(this.#largest, "body", bytes);
    const holders = this.#holdersOf(caller);
    const active = this.#inFlight + this.#queue.size;
    const most = FREE_SHARE * Math.max(0, this.#options.maxCalls - active);
    const { key, account } = holders;
    // Limits an account whatever the number of its keys, while other accounts have calls.
    const isOver = this.#accounts.size > 1 && account.calls + account.waiting >= most;
    if (isOver || key.calls + key.waiting >= most) throw this.#shed("calls");
    if (this.#isReady({ holders, bytes, isRead: false })) {
      this.#requireRoom(caller, holders);
      const isNext =
        this.#queue.size === 0 || (this.#queue.sizeOf(caller.keyFamilyId) === 0 && !this.#someOldest(this.#isNext));
      if (isNext && this.#hasTurn(holders.key)) return this.#begin(holders, bytes);
    }
    return this.#wait({ caller, holders, open, bytes, isRead });
  }

  /** A slot for a body that is read before its completion is queued (gRPC). Throws what `enter` throws. */
  receive(caller: Caller, bytes: number | undefined): Slot {
    requireSize(this.#largest, "body", bytes);
    const holders = this.#holdersOf(caller);
    this.#requireRoom(caller, holders);
    if (!fits(holders, bytes)) throw this.#noRoomFor(holders);
    return new Slot(holders, bytes, this.#bodyPorts);
  }

  /**
   * Call it before synchronous work for a request. Returns undefined when the work may run now, else a promise; await it and call
   * again. Throws `rate_limited` when the key stays in debt for `maxWaitMs`.
   */
  beforeWork(slot: Slot): Promise<void> | undefined {
    const { holders, sinceMs } = slot;
    if (this.#inDebt(holders.key)) {
      const waitedMs = this.#ports.clock.monotonic() - sinceMs;
      if (waitedMs > this.#options.maxWaitMs) throw this.#noRoomFor(holders);
      slot.idleUntil(this.#windowEnd.promise);
      return this.#windowEnd.promise;
    }
    if (this.#workedInTurnMs < WORK_PER_TURN_MS) return undefined;
    this.#armTurn();
    return new Promise((resolve) => this.#ports.atEndOfTurn(resolve));
  }

  /** Charges a key for a request with a body of `bytes` that its limits refused. */
  refusedByLimits({ keyFamilyId }: Pick<Principal, "keyFamilyId">, bytes = UNREAD_BYTES): void {
    const key = this.#keys.get(keyFamilyId);
    if (key !== undefined) key.debtMs += REFUSAL_MS + bytes * READ_MS_PER_BYTE;
  }

  /** Refuses all waiting completions and stops the timer. */
  close(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    // Waiters in debt must not wait for a window that never ends.
    this.#keys.clear();
    this.#windowEnd.resolve();
    for (const waiting of this.#queue.takeAll()) this.#reject(waiting, this.#shed("queue"));
  }

  state(): OverloadState {
    return {
      shedding: this.#shedding !== undefined,
      waiting: this.#queue.size,
      limit: Math.floor(this.#limit.value),
      memoryIsShort: this.#memoryIsShort,
      refused: { ...this.#refused },
    };
  }

  #holdersOf({ keyFamilyId, accountId }: Caller): Holders {
    const { key: keyBytes, account: accountBytes } = this.#options.arrivingBytes;
    const key = holdingOf(this.#keys, keyFamilyId, keyBytes);
    const account = holdingOf(this.#accounts, accountId, accountBytes);
    key.seenMs = account.seenMs = this.#ports.clock.monotonic();
    if (this.#stopLooking === undefined) this.#look();
    return { key, account, process: this.#process };
  }

  /** Throws for the concurrency limits of key and account, and, while memory is short, for keys that hold much of it. */
  #requireRoom({ limits, accountLimits }: Caller, { key, account }: Holders): void {
    const { concurrentRequests: ofKey = Infinity } = limits;
    const ofAccount = accountLimits.concurrentRequests ?? this.#options.accountConcurrency() ?? Infinity;
    if (key.calls >= ofKey) throw noRoom("key", atATime(ofKey));
    if (account.calls >= ofAccount) throw noRoom("account", atATime(ofAccount));
    // Completions in flight release memory. Until then keys that hold the average or more are refused.
    const isHolder = key.heldBytes * this.#keys.size >= this.#process.heldBytes;
    // Hundreds of megabytes can arrive between two measurements of memory, so held bytes count too. Keys with a small share go on.
    const { held } = this.#options.arrivingBytes;
    const isOver = this.#process.heldBytes > held && key.heldBytes > SMALL_SHARE * held;
    if ((this.#memoryIsShort || isOver) && this.#inFlight > 0 && isHolder) throw this.#shed("memory");
  }

  /** The failure of a key in debt, or of a body that exceeds a byte limit. */
  #noRoomFor({ key, account, process }: Holders, bytes = 0, what: "requests" | "answers" = "requests"): Failure {
    if (this.#inDebt(key)) return noRoom("key", "reading its requests takes more time than its share");
    const hasRoom = (holding: Holding): boolean =>
      what === "answers" ? holding.fitsAnswer(bytes) : holding.fits(bytes);
    const isProcess = hasRoom(key) && hasRoom(account) && !hasRoom(process);
    if (isProcess) return this.#shed("memory");
    const [whose, { maxBytes }] = hasRoom(key) ? (["account", account] as const) : (["key", key] as const);
    return noRoom(whose, `at most ${Math.floor(maxBytes / 2 ** 20)} MiB of ${what} may be in transit at a time`);
  }

  /** The failure of a completion that has waited too long, for a slot or for the limits of its key. */
  #lateFailure(waiting: Pick<Waiting, "holders" | "bytes" | "isRead">): Failure {
    return this.#isReady(waiting) ? this.#shed("queue") : this.#noRoomFor(waiting.holders, waiting.bytes);
  }

  /** Whether `is` holds for the oldest waiter of any key. */
  #someOldest(is: (waiting: Waiting) => boolean): boolean {
    for (const waiting of this.#queue.oldest()) if (is(waiting)) return true;
    return false;
  }

  readonly #isNext = (waiting: Waiting): boolean => this.#isReady(waiting) && this.#hasTurn(waiting.holders.key);

  /** Whether debt and byte limits permit a completion to begin. */
  readonly #isReady = ({ holders, bytes, isRead }: Pick<Waiting, "holders" | "bytes" | "isRead">): boolean =>
    !this.#inDebt(holders.key) && (isRead || fits(holders, bytes));

  #inDebt({ debtMs }: Holding): boolean {
    return debtMs > DEBT_MS && this.#keys.size > 1;
  }

  #hasTurn(key: Holding): boolean {
    return this.#begunInTurn < BEGUN_PER_TURN && (this.#isWithinShare(key) || this.#due >= 1);
  }

  #isWithinShare({ calls }: Holding): boolean {
    return calls < FREE_SHARE * (this.#limit.value - this.#working);
  }

  /** Calls in flight that may need the event loop. */
  get #working(): number {
    return this.#inFlight - this.#idle;
  }

  #begin(holders: Holders, bytes: number | undefined): Slot {
    if (this.#isWithinShare(holders.key)) this.#due = 0;
    else this.#due -= 1;
    this.#begunInTurn += 1;
    this.#begun += 1;
    this.#inFlight += 1;
    this.#armTurn();
    return new Slot(holders, bytes, this.#slotPorts);
  }

  readonly #ended = (): void => {
    this.#inFlight -= 1;
    this.#due += 0.5;
    if (this.#queue.size > 0) this.#armTurn();
  };

  #wait({
    caller,
    holders,
    open,
    bytes,
    isRead,
  }: Pick<Waiting, "caller" | "holders" | "open" | "bytes" | "isRead">): Promise<Slot> {
    const nowMs = this.#ports.clock.monotonic();
    const { keyFamilyId: key } = caller;
    const own = this.#queue.sizeOf(key) + 1;
    // Round robin: each key has as many turns first as this key has waiters.
    const turns = Math.min(own * (this.#queue.keys + (own === 1 ? 1 : 0)), this.#queue.size + 1);
    const { maxWaitMs } = this.#options;
    const longestMs = this.#shedding === undefined ? maxWaitMs : maxWaitMs * SHEDDING_SHARE;
    const isLate = turns > Math.max(MIN_TURNS, this.#limit.begunIn(longestMs));
    const expires = this.#limit.begunIn((open.expiresMs ?? Infinity) - nowMs) < turns;
    if (isLate || expires) throw this.#lateFailure({ holders, bytes, isRead });
    const unread = Math.min(bytes ?? UNREAD_BYTES, UNREAD_BYTES);
    if (holders.key.waitingBytes + unread > holders.key.maxBytes) throw this.#noRoomFor(holders, bytes);
    if (isRead && !fits(holders, bytes)) throw this.#noRoomFor(holders, bytes);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#queue.remove(waiting);
        this.#reject(waiting, open.signal.reason);
      };
      const waiting: Waiting = { key, caller, holders, open, bytes, isRead, resolve, reject, leave, sinceMs: nowMs };
      open.signal.addEventListener("abort", leave, { once: true });
      this.#countWaiting(waiting, 1);
      this.#queue.add(waiting);
      this.#armTurn();
    });
  }

  #armTurn(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    this.#ports.atEndOfTurn(() => {
      this.#turnEnds = false;
      this.#begunInTurn = 0;
      this.#workedInTurnMs = 0;
      if (this.#queue.size > 0) this.#beginWaiting();
    });
  }

  #beginWaiting(): void {
    for (
      let waiting = this.#queue.next(this.#isNext);
      waiting !== undefined;
      waiting = this.#queue.next(this.#isNext)
    ) {
      const { caller, holders, open, bytes } = waiting;
      this.#endIfExpired(open);
      if (open.signal.aborted) {
        this.#reject(waiting, open.signal.reason);
        continue;
      }
      try {
        this.#requireRoom(caller, holders);
      } catch (reason) {
        this.#reject(waiting, reason);
        continue;
      }
      this.#leaveQueue(waiting);
      this.#ports.waited?.(this.#ports.clock.monotonic() - waiting.sinceMs);
      waiting.resolve(this.#begin(holders, bytes));
    }
  }

  /** The deadline timer of a call may be late itself. */
  #endIfExpired(open: EnteringCall): void {
    if ((open.expiresMs ?? Infinity) <= this.#ports.clock.monotonic()) open.end(deadlinePassed());
  }

  #leaveQueue(waiting: Waiting): void {
    waiting.open.signal.removeEventListener("abort", waiting.leave);
    this.#countWaiting(waiting, -1);
  }

  #countWaiting({ holders, bytes = UNREAD_BYTES, isRead }: Waiting, sign: 1 | -1): void {
    const { key, account, process } = holders;
    for (const holding of [key, account]) {
      holding.waiting += sign;
      holding.waitingBytes += sign * Math.min(bytes, UNREAD_BYTES);
    }
    if (!isRead) return;
    for (const holding of [key, account, process]) {
      if (sign > 0) holding.arrives(bytes);
      else holding.arrives(0, bytes);
    }
  }

  #reject(waiting: Waiting, reason: unknown): void {
    this.#leaveQueue(waiting);
    waiting.reject(reason);
  }

  #shed(reason: OverloadReason): OverloadFailure {
    const nowMs = this.#ports.clock.monotonic();
    if (this.#shedding === undefined) {
      this.#shedding = { lastMs: nowMs, before: this.#refusedInAll };
      this.#ports.changed({ what: "began", reason });
    } else this.#shedding.lastMs = nowMs;
    this.#refused[reason] += 1;
    return OverloadFailure.because(reason);
  }

  get #refusedInAll(): number {
    return OVERLOAD_REASONS.reduce((sum, reason) => sum + this.#refused[reason], 0);
  }

  /** Starts windows, until the process is idle. */
  #look(): void {
    this.#ports.load();
    const again = (): void => {
      this.#stopLooking = this.#ports.clock.after(WINDOW_MS, () => {
        this.#stopLooking = undefined;
        this.#endWindow();
        if (!this.#isQuiet) again();
      });
    };
    again();
  }

  get #isQuiet(): boolean {
    return this.#inFlight + this.#queue.size + this.#keys.size === 0 && !this.#memoryIsShort && !this.#shedding;
  }

  #endWindow(): void {
    const nowMs = this.#ports.clock.monotonic();
    const isFull = this.#someOldest(this.#isReady);
    this.#limit.learn({ inFlight: this.#working, begun: this.#begun, isFull, ...this.#ports.load() });
    this.#begun = 0;
    this.#lookAtMemory();
    this.#payDebts(nowMs);
    this.#windowEnd.resolve();
    this.#windowEnd = Promise.withResolvers();
    const isLate = ({ sinceMs }: Waiting): boolean => nowMs - sinceMs > this.#options.maxWaitMs;
    for (const late of this.#queue.takeLate(isLate)) {
      this.#reject(late, this.#lateFailure(late));
    }
    if (this.#queue.size > 0) this.#armTurn();
    if (this.#shedding !== undefined && nowMs - this.#shedding.lastMs > QUIET_MS) {
      this.#ports.changed({ what: "ended", refused: this.#refusedInAll - this.#shedding.before });
      this.#shedding = undefined;
    }
  }

  /** Pays debts: keys in debt divide WORK_SHARE of a window. A single key has the whole event loop. */
  #payDebts(nowMs: number): void {
    let inDebt = 0;
    for (const key of this.#keys.values()) if (key.debtMs > DEBT_MS) inDebt += 1;
    const paidMs = this.#keys.size > 1 ? (WINDOW_MS * WORK_SHARE) / Math.max(1, inDebt) : Infinity;
    for (const [id, key] of this.#keys) {
      key.debtMs = Math.max(0, key.debtMs - paidMs);
      if (key.isIdle(nowMs)) this.#keys.delete(id);
    }
    for (const [id, account] of this.#accounts) if (account.isIdle(nowMs)) this.#accounts.delete(id);
  }

  #lookAtMemory(): void {
    const share = this.#ports.memoryShare();
    const isShort = share >= (this.#memoryIsShort ? ENOUGH : SHORT);
    if (isShort === this.#memoryIsShort) return;
    this.#memoryIsShort = isShort;
    this.#ports.changed({ what: "memory", isShort, share });
  }
}

function holdingOf(holdings: Map<string, Holding>, id: string, maxBytes: number): Holding {
  let found = holdings.get(id);
  if (found === undefined) holdings.set(id, (found = new Holding(maxBytes)));
  return found;
}

function fits({ key, account, process }: Holders, bytes = UNREAD_BYTES): boolean {
  return key.fits(bytes) && account.fits(bytes) && process.fits(bytes);
}

const wholeNumber = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function atATime(most: number): string {
  return `${wholeNumber.format(most)} request${most === 1 ? "" : "s"} at a time`;
}

import type { Clock } from "../core/clock.ts";
import { deadlinePassed, type Failure } from "../core/failure.ts";
import { FairQueue, type Waiter } from "../scheduling/fair-queue.ts";
import type { Principal } from "../core/principal.ts";
import { InFlightLimit, WINDOW_MS } from "./in-flight-limit.ts";
import { noRoom, OverloadFailure, OVERLOAD_REASONS, type OverloadReason } from "./overload-failure.ts";
import { type Holders, Holding, READ_MS_PER_BYTE, Slot, type SlotPorts } from "./slot.ts";

export interface OverloadOptions {
  /** How many completions may be in flight or wait in the process. */
  readonly maxCalls: number;
  /** How long a completion may wait for a slot, in milliseconds. */
  readonly maxWaitMs: number;
  /** Completions in flight of an account without a limit of its own; undefined for any number. */
  readonly accountConcurrency: number | undefined;
  /** Bytes of request bodies that may be arriving at the same time: of one key family, one account, the process. */
  readonly arrivingBytes: { readonly key: number; readonly account: number; readonly process: number };
}

export interface AdmissionPorts {
  readonly clock: Clock;
  /** The share of its memory that the process uses: 0 to 1. */
  readonly memoryShare: () => number;
  /** How busy the event loop was since the last call (0 to 1), and how late, in milliseconds. */
  readonly load: () => { readonly busyShare: number; readonly delayMs: number };
  /** Calls back at the end of this turn of the event loop. */
  readonly atEndOfTurn: (callback: () => void) => void;
  /** Is told when refusing begins and ends, and when memory becomes short and is enough again. */
  readonly changed: (change: OverloadChange) => void;
}

export type OverloadChange =
  | { readonly what: "began"; readonly reason: OverloadReason }
  | { readonly what: "ended"; readonly refused: number }
  | { readonly what: "memory"; readonly isShort: boolean; readonly share: number };

/** What the gateway says of its load. */
export interface OverloadState {
  readonly shedding: boolean;
  /** Completions that wait for a slot. */
  readonly waiting: number;
  /** Completions that may be in flight at the moment. */
  readonly limit: number;
  readonly memoryIsShort: boolean;
  /** Since the start. */
  readonly refused: Readonly<Record<OverloadReason, number>>;
}

/** Completions begun in one turn of the event loop, so that a turn stays short. */
const BEGUN_PER_TURN = 32;
/** A completion that would probably wait for more than this share of the longest wait is refused at once, */
const LIKELY_SHARE = 0.25;
/** unless no more than this many have their turn before it. */
const MIN_TURNS = 16;
/** What one key may have, as a multiple of what is still free: a lone key leaves a fifth, so that others find room at once. */
const FREE_SHARE = 4;
/** While other keys ask, the keys in debt share this part of the event loop for reading their requests. */
const WORK_SHARE = 0.25;
/** A key is in debt with this much work beyond its share, in milliseconds. */
const DEBT_MS = 25;
/** Work for requests in one turn of the event loop, in milliseconds. What is left waits for the next turn. */
const WORK_PER_TURN_MS = 10;
/** What a request that its own limits refuse counts as, beside its body, in milliseconds of work. */
const REFUSAL_MS = 1;
/** What is read of a body, by the kernel's and Node's buffers, while its request waits. */
const UNREAD_BYTES = 64 * 1024;
/** Memory is short from this share on, and enough again below the other. */
const SHORT = 0.95;
const ENOUGH = 0.92;
/** Shedding is over when nothing was refused for this long. */
const QUIET_MS = 10_000;

/** A call that asks for a slot. */
export interface EnteringCall {
  /** Aborts when the caller leaves; the reason is a Failure. */
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
 * Gives slots to completions before anything of them is read. What a key has no room for waits, or is refused, at its own
 * expense; what the process has no time for waits in a queue in which keys take turns.
 */
export class AdmissionControl {
  readonly #options: OverloadOptions;
  readonly #ports: AdmissionPorts;
  readonly #queue = new FairQueue<Waiting>();
  readonly #limit = new InFlightLimit();
  readonly #keys = new Map<string, Holding>();
  readonly #accounts = new Map<string, Holding>();
  readonly #process: Holding;
  readonly #slotPorts: SlotPorts;
  /** For bodies that arrive before their completions can wait. */
  readonly #bodyPorts: SlotPorts;
  readonly #refused = { queue: 0, calls: 0, memory: 0 };
  #inFlight = 0;
  #begun = 0;
  #begunInTurn = 0;
  #workedInTurnMs = 0;
  /** Ends with the current window. */
  #windowEnd = Promise.withResolvers<void>();
  /** Beginnings that are due to keys that have their share, or all of the limit: half of what has ended since. */
  #due = 0;
  #turnEnds = false;
  #memoryIsShort = false;
  #shedding: { lastMs: number; readonly before: number } | undefined;
  /** Ends the current window; undefined while nothing is in flight. */
  #stopLooking: (() => void) | undefined;

  constructor(options: OverloadOptions, ports: AdmissionPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#process = new Holding(options.arrivingBytes.process);
    this.#slotPorts = {
      clock: ports.clock,
      noRoom: (holders) => this.#noRoomFor(holders, UNREAD_BYTES),
      worked: (ms) => {
        this.#workedInTurnMs += ms;
      },
      ended: this.#ended,
    };
    this.#bodyPorts = { ...this.#slotPorts, ended: () => undefined };
  }

  /**
   * A slot for a completion whose body has this declared length (undefined: not declared), at once or when it is its key's
   * turn. Throws `rate_limited` when its key or account has no room, `overloaded` when the process has none, and the call's
   * reason when it ends before. A body that has been read before, as over gRPC, takes memory while it waits: it counts as
   * arriving until then.
   */
  enter(
    caller: Caller,
    open: EnteringCall,
    { bytes, isRead = false }: { readonly bytes: number | undefined; readonly isRead?: boolean },
  ): Slot | Promise<Slot> {
    this.#endIfExpired(open);
    if (open.signal.aborted) throw open.signal.reason;
    const holders = this.#holdersOf(caller);
    const active = this.#inFlight + this.#queue.size;
    const own = holders.key.calls + this.#queue.sizeOf(caller.keyFamilyId);
    const { maxCalls } = this.#options;
    if (own >= FREE_SHARE * Math.max(0, maxCalls - active)) throw this.#shed("calls");
    if (this.#isReady({ holders, bytes, isRead: false })) {
      this.#requireRoom(caller, holders);
      const isNext =
        this.#queue.size === 0 || (this.#queue.sizeOf(caller.keyFamilyId) === 0 && !this.#someOldest(this.#isNext));
      if (isNext && this.#hasTurn(holders.key)) return this.#begin(holders, bytes);
    }
    return this.#wait({ caller, holders, open, bytes, isRead });
  }

  /** A slot for a body that arrives before its completion can wait, as over gRPC. Throws what `enter` throws. */
  receive(caller: Caller, bytes: number | undefined): Slot {
    const holders = this.#holdersOf(caller);
    this.#requireRoom(caller, holders);
    if (!fits(holders, bytes)) throw this.#noRoomFor(holders);
    return new Slot(holders, bytes, this.#bodyPorts);
  }

  /**
   * Asked before synchronous work for a request: undefined when it may be done now, else what to wait for before asking
   * again. Throws `rate_limited` when the key has been in debt for as long as a request may wait.
   */
  beforeWork({ holders, sinceMs }: Slot): Promise<void> | undefined {
    if (this.#inDebt(holders.key)) {
      const waitedMs = this.#ports.clock.monotonic() - sinceMs;
      if (waitedMs > this.#options.maxWaitMs) throw this.#noRoomFor(holders);
      return this.#windowEnd.promise;
    }
    if (this.#workedInTurnMs < WORK_PER_TURN_MS) return undefined;
    this.#armTurn();
    return new Promise((resolve) => this.#ports.atEndOfTurn(resolve));
  }

  /** A request with a body of this length was refused for its key's limits: that counts as work of this key. */
  refusedByLimits({ keyFamilyId }: Pick<Principal, "keyFamilyId">, bytes = UNREAD_BYTES): void {
    const key = this.#keys.get(keyFamilyId);
    if (key !== undefined) key.debtMs += REFUSAL_MS + bytes * READ_MS_PER_BYTE;
  }

  /** Refuses what waits, and looks at nothing any more. */
  close(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    // No debt is paid any more.
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

  /** Throws when the key or its account has as many completions in flight as it may, or holds what memory is short of. */
  #requireRoom({ limits, accountLimits }: Caller, { key, account }: Holders): void {
    const { concurrentRequests: ofKey = Infinity } = limits;
    const ofAccount = accountLimits.concurrentRequests ?? this.#options.accountConcurrency ?? Infinity;
    if (key.calls >= ofKey) throw noRoom("key", atATime(ofKey));
    if (account.calls >= ofAccount) throw noRoom("account", atATime(ofAccount));
    // What is in flight ends by itself. Until then, keys that hold as much as the average or more get nothing new.
    const isHolder = key.heldBytes * this.#keys.size >= this.#process.heldBytes;
    if (this.#memoryIsShort && this.#inFlight > 0 && isHolder) throw this.#shed("memory");
  }

  /** Why a body does not fit, or its key has to wait. */
  #noRoomFor({ key, account, process }: Holders, bytes = 0): Failure {
    if (this.#inDebt(key)) return noRoom("key", "reading its requests takes more time than its share");
    const isProcess = key.fits(bytes) && account.fits(bytes) && !process.fits(bytes);
    if (isProcess) return this.#shed("memory");
    const [whose, { maxBytes }] = key.fits(bytes) ? (["account", account] as const) : (["key", key] as const);
    return noRoom(whose, `requests of ${Math.floor(maxBytes / 2 ** 20)} MiB together may be on their way`);
  }

  /** What a completion that waits too long is told: it waits for a slot, or for room of its own key. */
  #lateFailure(waiting: Pick<Waiting, "holders" | "bytes" | "isRead">): Failure {
    return this.#isReady(waiting) ? this.#shed("queue") : this.#noRoomFor(waiting.holders, waiting.bytes);
  }

  /** Whether the oldest waiter of any key is like that. */
  #someOldest(is: (waiting: Waiting) => boolean): boolean {
    for (const waiting of this.#queue.oldest()) if (is(waiting)) return true;
    return false;
  }

  readonly #isNext = (waiting: Waiting): boolean => this.#isReady(waiting) && this.#hasTurn(waiting.holders.key);

  /** Whether its own key and account, and the memory for bodies, let it begin. */
  readonly #isReady = ({ holders, bytes, isRead }: Pick<Waiting, "holders" | "bytes" | "isRead">): boolean =>
    !this.#inDebt(holders.key) && (isRead || fits(holders, bytes));

  #inDebt({ debtMs }: Holding): boolean {
    return debtMs > DEBT_MS && this.#keys.size > 1;
  }

  #hasTurn(key: Holding): boolean {
    return this.#begunInTurn < BEGUN_PER_TURN && (this.#isWithinShare(key) || this.#due >= 1);
  }

  #isWithinShare({ calls }: Holding): boolean {
    return calls < FREE_SHARE * (this.#limit.value - this.#inFlight);
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
    // Before it has its turn, each key has had as many turns as this one has waiters.
    const turns = Math.min(own * (this.#queue.keys + (own === 1 ? 1 : 0)), this.#queue.size + 1);
    const { maxWaitMs } = this.#options;
    const isLate = turns > Math.max(MIN_TURNS, this.#limit.begunIn(maxWaitMs * LIKELY_SHARE));
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
      waiting.resolve(this.#begin(holders, bytes));
    }
  }

  /** The timer that ends a call whose deadline has passed may be late itself. */
  #endIfExpired(open: EnteringCall): void {
    if ((open.expiresMs ?? Infinity) <= this.#ports.clock.monotonic()) open.end(deadlinePassed());
  }

  #leaveQueue(waiting: Waiting): void {
    waiting.open.signal.removeEventListener("abort", waiting.leave);
    this.#countWaiting(waiting, -1);
  }

  #countWaiting({ holders, bytes = UNREAD_BYTES, isRead }: Waiting, sign: 1 | -1): void {
    const { key, account, process } = holders;
    for (const holding of [key, account]) holding.waitingBytes += sign * Math.min(bytes, UNREAD_BYTES);
    if (!isRead) return;
    for (const holding of [key, account, process]) {
      holding.arrivingBytes += sign * bytes;
      holding.heldBytes += sign * bytes;
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

  /** Looks at what happens in windows, until nothing does. */
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
    this.#limit.learn({ inFlight: this.#inFlight, begun: this.#begun, isFull, ...this.#ports.load() });
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

  /** Keys in debt share what is for them of the event loop. A key that is the only one to ask has all of it. */
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

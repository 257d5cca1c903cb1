import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../core/principal.ts";
import { type Calls, deadlinePassed, type OpenCall } from "../calls.ts";
import { BeginRate, WINDOW_MS } from "./begin-rate.ts";
import { FairQueue, type Waiter } from "../../core/fair-queue.ts";
import { type MemoryStep, memoryStep } from "./memory-steps.ts";
import { Shed, SHED_REASONS, type ShedReason } from "./shed.ts";
import { type Place, UnderWay } from "./under-way.ts";

/** What may be configured. */
export interface OverloadOptions {
  /** How many calls of any kind may be under way. */
  readonly maxCalls: number;
  /** How long a completion may wait to be begun; one that probably would wait for a quarter of it is refused at once. */
  readonly maxWaitMs: number;
}

export interface AdmissionPorts {
  readonly clock: Clock;
  readonly calls: Pick<Calls, "active">;
  /** The share of its memory that the process uses: 0 to 1. */
  readonly memoryShare: () => number;
  /** What the event loop has done since it was last asked. */
  readonly loopUse: () => LoopUse;
  /** Calls back at the end of this turn of the event loop, when all that had arrived by then has been read. */
  readonly atEndOfTurn: (callback: () => void) => void;
  /** Is told when shedding begins and when it is over, and of every change of the memory's step. */
  readonly changed: (change: OverloadChange) => void;
}

/** How a stretch of time was used. */
export interface LoopUse {
  /** The share of it in which the event loop was busy: 0 to 1. */
  readonly busyShare: number;
  /** How much longer that took than it would have on a processor of its own: 1 or more. */
  readonly slowdown: number;
  /** The longest that a part of an answer has waited for its turn, in milliseconds. */
  readonly waitedMs: number;
}

export type OverloadChange =
  | { readonly what: "began"; readonly reason: ShedReason }
  | { readonly what: "ended"; readonly refused: number }
  | { readonly what: "memory"; readonly step: MemoryStep; readonly share: number };

/** What the gateway says of its load. */
export interface OverloadState {
  readonly shedding: boolean;
  /** Completions that wait to be begun. */
  readonly waiting: number;
  readonly memoryStep: MemoryStep;
  /** Since the start. */
  readonly refused: Readonly<Record<ShedReason, number>>;
}

/** So many are begun in one turn of the event loop: what it does besides must not wait long. */
const BEGUN_PER_TURN = 32;
/** So many may be under way, and so many wait, whatever the event loop does: a burst is over before anything is known of it. */
const ALWAYS_UNDER_WAY = 256;
const ALWAYS_WAITING = 16;
/** Who probably has to wait for this share of the longest wait is refused at once. */
const LIKELY_SHARE = 0.25;
/** Shedding is over when nobody was refused for so long. */
const QUIET_MS = 10_000;

interface Waiting extends Waiter {
  readonly open: OpenCall;
  readonly resolve: (place: Place) => void;
  readonly reject: (reason: unknown) => void;
  readonly leave: () => void;
  readonly sinceMs: number;
}

/**
 * Decides whether a completion is begun now, soon or not at all, before anything of it is read: no more are begun than the
 * event loop has time for.
 */
export class AdmissionControl {
  readonly #options: OverloadOptions;
  readonly #ports: AdmissionPorts;
  readonly #queue = new FairQueue<Waiting>();
  readonly #rate = new BeginRate();
  readonly #underWay: UnderWay;
  readonly #memoryListeners: ((step: MemoryStep) => void)[] = [];
  readonly #refused = { queue: 0, calls: 0, memory: 0 };
  #begunInTurn = 0;
  #turnEnds = false;
  /** Since when the event loop is looked at; undefined while it is not. */
  #sinceMs: number | undefined;
  /** Since when it is not. */
  #idleSinceMs: number | undefined;
  #stopLooking: (() => void) | undefined;
  #memoryStep: MemoryStep = 0;
  #shedding: { lastMs: number; readonly before: number } | undefined;

  constructor(options: OverloadOptions, ports: AdmissionPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#underWay = new UnderWay(ports.clock);
  }

  /**
   * A place for one more completion: at once, or when it is the turn of this key and those it was rotated from. Throws
   * `overloaded`, or the call's reason when its caller leaves or its deadline passes before that.
   */
  enter({ lineId }: Pick<Principal, "lineId">, open: OpenCall): Place | Promise<Place> {
    this.#endIfExpired(open);
    if (open.signal.aborted) throw open.signal.reason;
    if (this.#sinceMs === undefined) this.#look();
    if (!this.#hasMemory) throw this.#shed("memory");
    if (this.#ports.calls.active > this.#options.maxCalls) throw this.#shed("calls");
    if (this.#queue.size === 0 && this.#mayBegin()) return this.#begin();
    return this.#wait(lineId, open);
  }

  /** Looks at nothing any more. Who waits is refused. */
  close(): void {
    this.#stopLooking?.();
    this.#sinceMs = undefined;
    for (const waiting of this.#queue.takeAll()) this.#refuse(waiting, "queue");
  }

  /** Is told when the memory's step changes. */
  onMemoryStep(listener: (step: MemoryStep) => void): void {
    this.#memoryListeners.push(listener);
  }

  get memoryStep(): MemoryStep {
    return this.#memoryStep;
  }

  state(): OverloadState {
    return {
      shedding: this.#shedding !== undefined,
      waiting: this.#queue.size,
      memoryStep: this.#memoryStep,
      refused: { ...this.#refused },
    };
  }

  /** What uses up the memory ends by itself, as long as there is anything under way. */
  get #hasMemory(): boolean {
    return this.#memoryStep < 3 || this.#underWay.count === 0;
  }

  #mayBegin(): boolean {
    if (this.#begunInTurn >= BEGUN_PER_TURN) return false;
    return this.#underWay.count < ALWAYS_UNDER_WAY || this.#rate.take(this.#ports.clock.monotonic());
  }

  #begin(): Place {
    this.#begunInTurn += 1;
    this.#armTurn();
    const place = this.#underWay.begin();
    return {
      started: () => place.started(),
      end: () => {
        place.end();
        if (this.#queue.size > 0) this.#armTurn();
      },
    };
  }

  #wait(key: string, open: OpenCall): Promise<Place> {
    const nowMs = this.#ports.clock.monotonic();
    const own = this.#queue.sizeOf(key) + 1;
    const all = this.#queue.size + 1;
    // Before it has its turn, each key has had as many turns as this one has waiters.
    const turns = Math.min(own * Math.max(1, this.#queue.keys), all);
    // Who cannot wait as long would be begun for nothing.
    const isTooLate = open.expiresMs !== undefined && this.#rate.usualMs(turns) > open.expiresMs - nowMs;
    if (isTooLate) throw this.#shed("queue");
    // A key's first waiter need not suffer from a bad moment, and nobody does before anything had to be refused.
    const isCareful = own > 1 && this.#shedding !== undefined;
    const allMs = isCareful ? this.#rate.likelyMs(all) : this.#rate.usualMs(all);
    const always = ALWAYS_WAITING + Math.max(0, ALWAYS_UNDER_WAY - this.#underWay.count);
    if (all > always && allMs > this.#options.maxWaitMs * LIKELY_SHARE) {
      const newest = this.#queue.takeOfLongest(own);
      if (newest === undefined) throw this.#shed("queue");
      this.#refuse(newest, "queue");
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#queue.remove(waiting);
        reject(open.signal.reason);
      };
      const waiting: Waiting = { key, open, resolve, reject, leave, sinceMs: nowMs };
      open.signal.addEventListener("abort", leave, { once: true });
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
      if (this.#queue.size > 0) this.#beginWaiting();
    });
  }

  #beginWaiting(): void {
    while (this.#queue.size > 0 && this.#mayBegin()) {
      const { open, leave, resolve, reject } = this.#queue.next()!;
      open.signal.removeEventListener("abort", leave);
      this.#endIfExpired(open);
      if (open.signal.aborted) reject(open.signal.reason);
      else resolve(this.#begin());
    }
  }

  /** A timer of its own ends a call whose deadline has passed, but a loop that is late has not come to that yet. */
  #endIfExpired(open: OpenCall): void {
    if ((open.expiresMs ?? Infinity) <= this.#ports.clock.monotonic()) open.end(deadlinePassed());
  }

  #refuse({ open, leave, reject }: Waiting, reason: ShedReason): void {
    open.signal.removeEventListener("abort", leave);
    reject(this.#shed(reason));
  }

  #shed(reason: ShedReason): Shed {
    const nowMs = this.#ports.clock.monotonic();
    if (this.#shedding === undefined) {
      this.#shedding = { lastMs: nowMs, before: this.#refusedInAll };
      this.#ports.changed({ what: "began", reason });
    } else this.#shedding.lastMs = nowMs;
    this.#refused[reason] += 1;
    return Shed.because(reason);
  }

  get #refusedInAll(): number {
    return SHED_REASONS.reduce((sum, reason) => sum + this.#refused[reason], 0);
  }

  #look(): void {
    const { clock, loopUse } = this.#ports;
    const nowMs = clock.monotonic();
    if (this.#sinceMs === undefined) {
      loopUse();
      this.#rate.forget(nowMs - (this.#idleSinceMs ?? nowMs));
    }
    this.#sinceMs = nowMs;
    this.#stopLooking = clock.after(WINDOW_MS, () => this.#endWindow());
  }

  #endWindow(): void {
    const { clock, loopUse } = this.#ports;
    const nowMs = clock.monotonic();
    const lateMs = nowMs - this.#sinceMs! - WINDOW_MS;
    const { busyShare, slowdown, waitedMs } = loopUse();
    // Time in which other programs had the processor does not become less by refusing.
    const ownLateMs = Math.max(lateMs, waitedMs) / slowdown;
    this.#rate.learn({ busyShare, lateMs: ownLateMs, ...this.#underWay.progress() });
    this.#lookAtMemory();
    this.#refuseLate(nowMs, lateMs);
    if (this.#queue.size > 0) this.#armTurn();
    if (this.#shedding !== undefined && nowMs - this.#shedding.lastMs > QUIET_MS) {
      this.#ports.changed({ what: "ended", refused: this.#refusedInAll - this.#shedding.before });
      this.#shedding = undefined;
    }
    const isQuiet = this.#underWay.count === 0 && this.#queue.size === 0 && this.#shedding === undefined;
    if (isQuiet && this.#memoryStep === 0) {
      this.#sinceMs = undefined;
      this.#idleSinceMs = nowMs;
    } else this.#look();
  }

  /** Refuses who has waited for as long as may be, unless the loop stood still for that long, and who waits for memory. */
  #refuseLate(nowMs: number, lateMs: number): void {
    if (!this.#hasMemory) for (const waiting of this.#queue.takeAll()) this.#refuse(waiting, "memory");
    if (lateMs > this.#options.maxWaitMs) return;
    const isLate = ({ sinceMs }: Waiting): boolean => nowMs - sinceMs > this.#options.maxWaitMs;
    for (const waiting of this.#queue.takeLate(isLate)) this.#refuse(waiting, "queue");
  }

  #lookAtMemory(): void {
    const share = this.#ports.memoryShare();
    const step = memoryStep(share, this.#memoryStep);
    if (step === this.#memoryStep) return;
    this.#memoryStep = step;
    this.#ports.changed({ what: "memory", step, share });
    for (const listener of this.#memoryListeners) listener(step);
  }
}

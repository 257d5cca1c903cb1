import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../core/principal.ts";
import { type Calls, deadlinePassed, type OpenCall } from "../calls.ts";
import { BeginRate, WINDOW_MS } from "./begin-rate.ts";
import { FairQueue, type Waiter } from "./fair-queue.ts";
import { type MemoryStep, memoryStep } from "./memory-steps.ts";
import { Shed, SHED_REASONS, type ShedReason } from "./shed.ts";

/** What may be configured. */
export interface OverloadOptions {
  /** How many calls may be under way. */
  readonly maxCompletions: number;
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
}

export type OverloadChange =
  | { readonly what: "began"; readonly reason: ShedReason }
  | { readonly what: "ended"; readonly refused: number }
  | { readonly what: "memory"; readonly step: MemoryStep; readonly share: number };

/** What the gateway says of its load. */
export interface OverloadState {
  readonly shedding: boolean;
  /** Completions without any content yet. */
  readonly starting: number;
  readonly waiting: number;
  readonly memoryStep: MemoryStep;
  /** Since the start. */
  readonly refused: Readonly<Record<ShedReason, number>>;
}

/** A place among the completions that are under way. */
export interface Place {
  /** Its first content is there, or will come with all the rest. */
  started(): void;
  /** It is over. Must be called once. */
  end(): void;
}

/** So many are begun in one turn of the event loop: what it does besides must not wait long. */
const BEGUN_PER_TURN = 32;
/** How much a completion counts in how long they take. */
const WEIGHT = 0.05;
/** So many may be under way, and so many wait, whatever the event loop does: a burst is over before anything is known of it. */
const ALWAYS_UNDER_WAY = 64;
const ALWAYS_WAITING = 64;
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
  readonly #memoryListeners: ((step: MemoryStep) => void)[] = [];
  readonly #refused = { queue: 0, completions: 0, memory: 0 };
  #starting = 0;
  #underWay = 0;
  #begunInTurn = 0;
  #turnEnds = false;
  /** Since when the event loop is looked at; undefined while it is not. */
  #sinceMs: number | undefined;
  #firstContentMs = 0;
  /** Undefined as long as none has ended. */
  #wholeMs: number | undefined;
  /** Sum of when those under way were begun. */
  #begunSumMs = 0;
  #memoryStep: MemoryStep = 0;
  #shedding: { lastMs: number; readonly before: number } | undefined;

  constructor(options: OverloadOptions, ports: AdmissionPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /**
   * A place for one more completion: at once, or when it is this key's turn. Throws `overloaded`, or the call's reason when
   * its caller leaves or its deadline passes before that.
   */
  enter({ keyId }: Pick<Principal, "keyId">, open: OpenCall): Place | Promise<Place> {
    if (this.#sinceMs === undefined) this.#watch();
    if (this.#memoryStep === 3) throw this.#shed("memory");
    if (this.#ports.calls.active > this.#options.maxCompletions) throw this.#shed("completions");
    if (this.#queue.size === 0 && this.#mayBegin()) return this.#begin();
    return this.#wait(keyId, open);
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
      starting: this.#starting,
      waiting: this.#queue.size,
      memoryStep: this.#memoryStep,
      refused: { ...this.#refused },
    };
  }

  #mayBegin(): boolean {
    if (this.#begunInTurn >= BEGUN_PER_TURN) return false;
    return this.#underWay < ALWAYS_UNDER_WAY || this.#rate.take(this.#ports.clock.monotonic());
  }

  #begin(): Place {
    const { clock } = this.#ports;
    const begunMs = clock.monotonic();
    this.#starting += 1;
    this.#underWay += 1;
    this.#begunInTurn += 1;
    this.#begunSumMs += begunMs;
    this.#armTurn();
    let startedMs: number | undefined;
    const started = (): void => {
      if (startedMs !== undefined) return;
      startedMs = clock.monotonic();
      this.#starting -= 1;
      this.#firstContentMs += (startedMs - begunMs - this.#firstContentMs) * WEIGHT;
    };
    return {
      started,
      end: () => {
        started();
        this.#underWay -= 1;
        const tookMs = clock.monotonic() - begunMs;
        this.#begunSumMs -= begunMs;
        this.#wholeMs = this.#wholeMs === undefined ? tookMs : this.#wholeMs + (tookMs - this.#wholeMs) * WEIGHT;
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
    const leftMs = (open.expiresMs ?? Infinity) - nowMs;
    // Who cannot wait as long would be begun for nothing.
    if (turns > this.#rate.usualPerSecond * (leftMs / 1000)) throw this.#shed("queue");
    // A key's first waiter need not suffer from a bad moment.
    const perSecond = own === 1 ? this.#rate.usualPerSecond : this.#rate.perSecond;
    if (all > ALWAYS_WAITING && all > perSecond * (this.#options.maxWaitMs / 4000)) {
      const newest = this.#queue.takeOfLongest(own);
      if (newest === undefined) throw this.#shed("queue");
      this.#refuse(newest);
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#queue.remove(waiting);
        reject(open.signal.reason);
      };
      const waiting: Waiting = { key, open, resolve, reject, leave, sinceMs: nowMs };
      if (open.signal.aborted) return reject(open.signal.reason);
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
    const nowMs = this.#ports.clock.monotonic();
    while (this.#queue.size > 0 && this.#mayBegin()) {
      const waiting = this.#queue.next()!;
      waiting.open.signal.removeEventListener("abort", waiting.leave);
      const { expiresMs = Infinity } = waiting.open;
      // A timer of its own ends it, but a loop that is late has not come to that yet.
      if (expiresMs <= nowMs) waiting.open.end(deadlinePassed());
      if (waiting.open.signal.aborted) waiting.reject(waiting.open.signal.reason);
      else waiting.resolve(this.#begin());
    }
  }

  #refuse({ open, leave, reject }: Waiting): void {
    open.signal.removeEventListener("abort", leave);
    reject(this.#shed("queue"));
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

  #watch(): void {
    const { clock, loopUse } = this.#ports;
    if (this.#sinceMs === undefined) loopUse();
    this.#sinceMs = clock.monotonic();
    clock.after(WINDOW_MS, () => this.#endWindow());
  }

  #endWindow(): void {
    const { clock, loopUse } = this.#ports;
    const nowMs = clock.monotonic();
    const { busyShare, slowdown } = loopUse();
    this.#rate.learn({
      busyShare,
      // Time in which other programs had the processor does not become less by refusing.
      lateMs: (nowMs - this.#sinceMs! - WINDOW_MS) / slowdown,
      started: this.#underWay - this.#starting,
      starting: this.#starting,
      firstContentMs: this.#firstContentMs,
      // As long as none has ended, as long as those have taken that were begun first.
      wholeMs: this.#wholeMs ?? 2 * (nowMs - this.#begunSumMs / Math.max(this.#underWay, 1)),
    });
    const isLate = ({ sinceMs }: Waiting): boolean => nowMs - sinceMs > this.#options.maxWaitMs;
    for (const waiting of this.#queue.takeLate(isLate)) this.#refuse(waiting);
    if (this.#queue.size > 0) this.#armTurn();
    this.#lookAtMemory();
    if (this.#shedding !== undefined && nowMs - this.#shedding.lastMs > QUIET_MS) {
      this.#ports.changed({ what: "ended", refused: this.#refusedInAll - this.#shedding.before });
      this.#shedding = undefined;
    }
    if (this.#underWay > 0 || this.#queue.size > 0 || this.#shedding !== undefined || this.#memoryStep > 0)
      this.#watch();
    else this.#sinceMs = undefined;
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

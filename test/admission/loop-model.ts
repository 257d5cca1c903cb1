import type { Clock } from "../../src/core/clock.ts";
import { Calls } from "../../src/inbound/calls.ts";
import { AdmissionControl, type OverloadChange, type OverloadOptions } from "../../src/admission/admission-control.ts";
import type { Slot } from "../../src/admission/slot.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { OverloadFailure } from "../../src/admission/overload-failure.ts";

/** What things cost the event loop, in milliseconds. */
export interface Costs {
  readonly start: number;
  readonly chunk: number;
  readonly end: number;
  readonly refusal: number;
}

/** What every completion is like. */
export interface Shape {
  readonly firstMs: number;
  readonly chunks: number;
  readonly intervalMs: number;
}

/** Who sends how many requests a second. */
export interface Source {
  readonly key: string;
  readonly perSecond: number;
  /** What its completions are like. Default: as the model's are. */
  readonly shape?: Shape;
}

/** What became of a source's requests. */
export interface Told {
  begun: number;
  readonly servedMs: number[];
  readonly refusedMs: number[];
}

interface Arrival {
  readonly key: string;
  readonly told: Told;
  readonly shape: Shape;
  readonly arrivedMs: number;
  /** Called when it has its answer or its refusal. */
  readonly ended?: () => void;
}

interface Event {
  readonly costMs: number;
  readonly run?: () => void;
}

/** Events by the millisecond in which they are due. */
class Agenda {
  readonly #byMs = new Map<number, Event[]>();
  #doneMs = 0;

  add(atMs: number, event: Event): void {
    const ms = Math.max(Math.ceil(atMs), this.#doneMs + 1);
    const events = this.#byMs.get(ms);
    if (events === undefined) this.#byMs.set(ms, [event]);
    else events.push(event);
  }

  /** All events that are due by then. */
  takeUntil(nowMs: number): Event[] {
    const due: Event[] = [];
    for (let ms = this.#doneMs + 1; ms <= nowMs; ms++) {
      const events = this.#byMs.get(ms);
      if (events === undefined) continue;
      for (const event of events) due.push(event);
      this.#byMs.delete(ms);
    }
    this.#doneMs = Math.floor(nowMs);
    return due;
  }

  /** Due time of the next event, within a second. */
  nextMs(afterMs: number): number {
    for (let ms = Math.floor(afterMs) + 1; ms < afterMs + 1000; ms++) if (this.#byMs.has(ms)) return ms;
    return afterMs + 1000;
  }
}

/**
 * An event loop in virtual time: a turn does all that has come up before it began, and takes as long as that costs. What
 * overload does to Node's, without a machine whose neighbours would be measured too.
 */
export class LoopModel implements Clock {
  readonly admission: AdmissionControl;
  readonly changes: OverloadChange[] = [];
  readonly told = new Map<string, Told>();
  memoryShare = 0;
  /** Answers complete so far. */
  servedTotal = 0;
  /** How long each turn took. */
  readonly turnsMs: number[] = [];
  readonly #costs: Costs;
  /** One for all chunks, of which there are millions. */
  readonly #chunk: Event;
  readonly #shape: Shape;
  readonly #calls = new Calls(this);
  #nowMs = 1;
  #busyMs = 0;
  #askedMs = 1;
  #askedTurns = 0;
  readonly #events = new Agenda();
  readonly #timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();
  readonly #afterThisLoopTurn: (() => void)[] = [];

  constructor(options: OverloadOptions, { costs, shape }: { readonly costs: Costs; readonly shape: Shape }) {
    this.#costs = costs;
    this.#chunk = { costMs: costs.chunk };
    this.#shape = shape;
    this.admission = new AdmissionControl(options, {
      clock: this,
      memoryShare: () => this.memoryShare,
      load: () => ({ busyShare: this.#takeBusyShare(), delayMs: this.#takeDelayMs() }),
      atEndOfTurn: (callback) => void this.#afterThisLoopTurn.push(callback),
      changed: (change) => void this.changes.push(change),
    });
  }

  now = (): number => this.#nowMs;
  monotonic = (): number => this.#nowMs;

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get active(): number {
    return this.#calls.active;
  }

  /** Lets the sources send for so long, and the loop turn. */
  async run(seconds: number, sources: readonly Source[]): Promise<void> {
    const endMs = this.#nowMs + seconds * 1000;
    for (const { key, perSecond, shape = this.#shape } of sources) {
      const told: Told = { begun: 0, servedMs: [], refusedMs: [] };
      this.told.set(key, told);
      const count = Math.round(seconds * perSecond);
      for (let index = 0; index < count; index++) {
        const atMs = this.#nowMs + (index * 1000) / perSecond;
        this.#events.add(atMs, { costMs: 0, run: () => this.#arrive({ key, told, shape, arrivedMs: atMs }) });
      }
    }
    while (this.#nowMs < endMs) await this.#turn();
  }

  /** Lets this many connections of one key send their next request whenever they have an answer. */
  async runClosed(seconds: number, connections: number): Promise<void> {
    const endMs = this.#nowMs + seconds * 1000;
    const told: Told = { begun: 0, servedMs: [], refusedMs: [] };
    this.told.set("closed", told);
    const again = (): void =>
      this.#arrive({ key: "closed", told, shape: this.#shape, arrivedMs: this.#nowMs, ended: again });
    for (let index = 0; index < connections; index++) this.#events.add(0, { costMs: 0, run: again });
    while (this.#nowMs < endMs) await this.#turn();
  }

  async #turn(): Promise<void> {
    const beganMs = this.#nowMs;
    for (const timer of this.#timers) {
      if (timer.atMs > this.#nowMs || !this.#timers.delete(timer)) continue;
      timer.callback();
    }
    for (const { costMs, run } of this.#events.takeUntil(beganMs)) {
      this.#nowMs += costMs;
      run?.();
    }
    for (let flushed = 0; flushed < 4; flushed++) await Promise.resolve();
    for (const callback of this.#afterThisLoopTurn.splice(0)) callback();
    for (let flushed = 0; flushed < 4; flushed++) await Promise.resolve();
    this.#busyMs += this.#nowMs - beganMs;
    if (this.#nowMs > beganMs) return void this.turnsMs.push(this.#nowMs - beganMs);
    // Nothing was due: the loop sleeps.
    const timers = [...this.#timers].map(({ atMs }) => atMs);
    const next = Math.min(...timers, this.#events.nextMs(beganMs));
    this.#nowMs = Math.max(this.#nowMs, Number.isFinite(next) ? next : this.#nowMs + 1);
  }

  #takeBusyShare(): number {
    const share = this.#busyMs / Math.max(this.#nowMs - this.#askedMs, 1);
    this.#busyMs = 0;
    this.#askedMs = this.#nowMs;
    return Math.min(share, 1);
  }

  /** The longest turn since this was last asked. */
  #takeDelayMs(): number {
    const longest = Math.max(0, ...this.turnsMs.slice(this.#askedTurns));
    this.#askedTurns = this.turnsMs.length;
    return longest;
  }

  #arrive({ key, told, shape, arrivedMs, ended }: Arrival): void {
    const open = this.#calls.open(undefined);
    const refuse = (reason: unknown): void => {
      if (!(reason instanceof OverloadFailure)) throw reason;
      this.#nowMs += this.#costs.refusal;
      open.close();
      told.refusedMs.push(this.#nowMs - arrivedMs);
      if (ended !== undefined) this.#events.add(this.#nowMs + 1, { costMs: 0, run: ended });
    };
    const begin = (slot: Slot): void => {
      told.begun += 1;
      this.#nowMs += this.#costs.start;
      const { firstMs, chunks, intervalMs } = shape;
      for (let index = 0; index < chunks; index++)
        this.#events.add(this.#nowMs + firstMs + index * intervalMs, this.#chunk);
      const end = (): void => {
        slot.end();
        open.close();
        this.servedTotal += 1;
        told.servedMs.push(this.#nowMs - arrivedMs);
        if (ended !== undefined) this.#events.add(this.#nowMs + 1, { costMs: 0, run: ended });
      };
      this.#events.add(this.#nowMs + firstMs + chunks * intervalMs, { costMs: this.#costs.end, run: end });
    };
    try {
      const entered = this.admission.enter(
        { keyFamilyId: key, accountId: key, limits: NO_LIMITS, accountLimits: NO_LIMITS },
        open,
        { bytes: 0 },
      );
      if (entered instanceof Promise) void entered.then(begin, refuse);
      else begin(entered);
    } catch (reason) {
      refuse(reason);
    }
  }
}

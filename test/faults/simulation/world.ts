import type { NewLedgerEntry } from "../../../src/core/ledger.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { Bank } from "./bank.ts";
import { Chance } from "./chance.ts";
import {
  drawAttribution,
  drawGrants,
  drawHabits,
  drawModels,
  drawRequest,
  drawWeather,
  MAX_TOTAL_MS,
  UPSTREAMS,
} from "./draw.ts";
import { answer } from "./entrance.ts";
import { type Restart, triggerEvent } from "./events.ts";
import { Journey } from "./journey.ts";
import { judgeEnd, judgeEntry } from "./judge.ts";
import { KeyDirectory } from "./key-directory.ts";
import { type ModelSpec, SimulatedProcess, type Surroundings } from "./process.ts";
import type { Weather } from "./scripts.ts";
import { Journal } from "./watch.ts";

/** Upper bound of every duration: the longest timeout, a reader that never reads, and database latency. */
const MAX_LIFE_MS = MAX_TOTAL_MS + 31_000 + 10_000;
/** Lifetime of a budget hold whose process is gone. */
const HOLD_MS = MAX_TOTAL_MS + 3_000 + 60_000 + 1_000;
const RETRY_START_MS = 500;

/** A completion and its process. */
interface Tracked {
  readonly journey: Journey;
  readonly process: SimulatedProcess;
}

/** One world: processes, databases, upstream models and callers on one clock, generated from one seed. */
export class World {
  readonly journal: Journal;
  readonly #clock: FakeClock;
  readonly #chance: Chance;
  readonly #around: Surroundings;
  readonly #weather = new Map<string, Weather>();
  readonly #journeys = new Map<string, Journey>();
  readonly #ended: Tracked[] = [];
  readonly #open = new Set<Tracked>();
  readonly #processes = new Set<SimulatedProcess>();
  /** The process that receives new calls. */
  #front: SimulatedProcess | undefined;
  /** Entries that a process could not write: the next start writes them. */
  #left: NewLedgerEntry[] = [];
  #specs: readonly ModelSpec[];
  #ending = 0;
  #toCome: number;
  readonly #counts = { processes: 0, calls: 0, journeys: 0 };
  #isCalm = false;

  constructor(seed: string, size: number, counts: Map<string, number>) {
    this.#chance = new Chance(seed);
    this.#toCome = size;
    // Some worlds include the end of a month.
    const beganMs = this.#chance.percent(10) ? Date.UTC(2026, 0, 31, 23, 59, 50) : Date.UTC(2026, 0, 10);
    this.#clock = new FakeClock(beganMs);
    this.journal = new Journal(() => this.#clock.monotonic() - 1_000_000, counts);
    const [clock, chance, watch] = [this.#clock, this.#chance, this.journal];
    this.#specs = drawModels(chance);
    for (const name of UPSTREAMS) this.#weather.set(name, drawWeather(chance));
    const keys = new KeyDirectory({ clock, chance, watch }, drawGrants(chance, beganMs));
    const sky = {
      chance,
      watch,
      weather: this.#weather,
      journeyOf: (tag: string) => this.#journeys.get(tag)!,
      nextCall: () => (this.#counts.calls += 1),
    };
    const limitsOf = (keyId: string) => keys.find(keyId).grant.record.attributionLimits ?? {};
    const bank = new Bank({ clock, watch, limitsOf });
    this.#around = { clock, sky, bank, keys, burstMs: chance.pick([1_000, 10_000, 60_000]) };
  }

  /** Runs the world to its end. Every breach is in the journal. */
  async run(): Promise<void> {
    this.#start();
    const meanMs = this.#chance.pick([3, 15, 40, 120, 400]);
    this.#expectCaller(meanMs);
    this.#expectEvent(Math.min(10 * meanMs, 2_000));
    await this.#until(
      () => this.#toCome === 0 && this.#open.size === 0 && this.#ending === 0 && this.#front !== undefined,
    );
    this.#calm();
    await this.#until(() => this.#front!.ledger.state().waiting === 0 && this.#front !== undefined);
    void this.#stop(this.#front!, 1_000);
    await this.#until(() => this.#ending === 0);
    await this.#expectHolds();
    await this.#clock.pass(HOLD_MS);
    await this.#rest();
  }

  /** Final state, to compare two runs. */
  written(): string {
    return JSON.stringify([...this.#around.bank.entries.values()]);
  }

  /** Runs one timer after the other, and all promises after each. */
  async #until(isOver: () => boolean): Promise<void> {
    let lateMs = Infinity;
    await this.#settle();
    while (!isOver()) {
      if (!this.#clock.step()) return this.journal.breach("end", "calls are in flight, but no timer is pending");
      await this.#settle();
      const active = [...this.#processes].reduce((sum, { calls }) => sum + calls.active, 0);
      if (active !== this.#open.size) this.journal.breach("end", `${active} calls are open of ${this.#open.size}`);
      const nowMs = this.#clock.monotonic();
      if (this.#toCome === 0) lateMs = Math.min(lateMs, nowMs + 2 * MAX_LIFE_MS);
      if (nowMs <= lateMs) continue;
      for (const { journey } of this.#open) this.journal.breach("end", "the completion does not end", journey.number);
      return this.journal.breach("end", "the world does not end");
    }
  }

  /** Waits for all promises: ledgers collect a batch for one turn of the real event loop. */
  async #settle(): Promise<void> {
    await settle();
    const waiting = (): number => [...this.#processes].reduce((sum, { ledger }) => sum + ledger.state().waiting, 0);
    for (let before = Infinity; waiting() > 0 && waiting() < before;) {
      before = waiting();
      await settle();
    }
  }

  #start(): void {
    const { bank } = this.#around;
    const begin = (): void => {
      this.#counts.processes += 1;
      const process = new SimulatedProcess(this.#counts.processes, this.#around, {
        models: this.#specs,
        onRecord: (record) => this.#journeys.get(record.requestId.slice(4))!.recorded(record, this.#clock.monotonic()),
      });
      this.journal.note(`process ${process.number} begins`);
      this.#processes.add(process);
      this.#front = process;
    };
    if (this.#left.length === 0) return begin();
    const entries = this.#left;
    // Serialized as on disk.
    const read = JSON.parse(JSON.stringify(entries)) as NewLedgerEntry[];
    this.#ending += 1;
    bank.insert(read).then(
      () => {
        this.journal.count("entries that a start wrote");
        this.#left = this.#left.filter((entry) => !entries.includes(entry));
        this.#ending -= 1;
        return begin();
      },
      () => {
        const again = (): void => {
          this.#ending -= 1;
          this.#start();
        };
        this.#clock.after(RETRY_START_MS, again);
      },
    );
  }

  #expectCaller(meanMs: number): void {
    this.#clock.after(this.#chance.between(0, 2 * meanMs), () => {
      // Connection refused: the caller retries.
      if (this.#front === undefined) return this.#expectCaller(100);
      this.#toCome -= 1;
      if (this.#toCome > 0) this.#expectCaller(meanMs);
      this.#serve(this.#front);
    });
  }

  #serve(process: SimulatedProcess): void {
    const { keys } = this.#around;
    const [chance, watch, clock] = [this.#chance, this.journal, this.#clock];
    this.#counts.journeys += 1;
    const number = this.#counts.journeys;
    const request = drawRequest(chance, number);
    const isStream = chance.percent(60);
    const [attribution, habits] = [drawAttribution(chance), drawHabits(chance)];
    const journey = new Journey({ number, key: keys.pick(), request, attribution, isStream, habits });
    const tracked = { journey, process };
    this.#journeys.set(String(number), journey);
    this.#open.add(tracked);
    answer(process, journey, { clock, chance, keys, watch }).then(
      () => {
        this.#open.delete(tracked);
        this.#ended.push(tracked);
        return judgeEnd({ ...tracked, bank: this.#around.bank, watch });
      },
      (error: unknown) => watch.breach("end", String(error), number),
    );
  }

  #expectEvent(meanMs: number): void {
    this.#clock.after(this.#chance.between(0, 2 * meanMs), () => {
      if (this.#isCalm || this.#toCome === 0) return;
      const { bank, keys } = this.#around;
      const [clock, chance, watch, weather] = [this.#clock, this.#chance, this.journal, this.#weather];
      const reload = (): void => this.#reload();
      triggerEvent({ clock, chance, watch, bank, keys, weather, reload, restart: (kind) => this.#restart(kind) });
      this.#expectEvent(meanMs);
    });
  }

  #reload(): void {
    this.#specs = drawModels(this.#chance);
    this.journal.note("the configuration is loaded again");
    this.#front?.reload(this.#specs);
  }

  #restart(kind: Restart): void {
    const process = this.#front;
    if (process === undefined) return;
    this.journal.count(`restarts: ${kind}`);
    this.journal.note(`process ${process.number} ends: ${kind}`);
    this.#front = undefined;
    if (kind === "killed") {
      this.#kill(process);
      this.#start();
    } else if (kind === "rolling") {
      void this.#stop(process, 60_000);
      this.#start();
    } else void this.#stop(process, kind === "in turn" ? 5_000 : 50).then(() => this.#start());
  }

  async #stop(process: SimulatedProcess, drainMs: number): Promise<void> {
    this.#ending += 1;
    const left = await process.stop(drainMs);
    this.#left = [...this.#left, ...left];
    this.#processes.delete(process);
    this.#ending -= 1;
  }

  #kill(process: SimulatedProcess): void {
    this.#left = [...this.#left, ...process.kill()];
    this.#processes.delete(process);
    const inFiles = new Set(this.#left.map(({ completionId }) => completionId));
    const isAway = process.ledger.state().away;
    for (const tracked of this.#open) {
      if (tracked.process !== process) continue;
      tracked.journey.isLost = true;
      tracked.journey.hangUp();
      this.#open.delete(tracked);
    }
    for (const { journey, process: its } of this.#ended) {
      const isWritten = this.#around.bank.entries.has(journey.id) || inFiles.has(journey.id);
      if (its !== process || !journey.isAdmitted || isWritten) continue;
      // The entry was only in the killed process. If the database is available, the entry is written before the end is
      // reported, except for a completion whose provider call continues for its token counts.
      if (isAway || isListenedTo(journey)) journey.isLost = true;
    }
  }

  /** Stops all faults. */
  #calm(): void {
    this.#isCalm = true;
    const { bank, keys } = this.#around;
    Object.assign(bank, { state: "well", delayMs: 0 });
    keys.setHealth({ isAway: false, delayMs: 0 });
  }

  /** Checks that budget holds remain only for completions whose process is gone. */
  async #expectHolds(): Promise<void> {
    this.#calm();
    const { bank } = this.#around;
    await bank.reap();
    const lost = new Set([...this.#journeys.values()].filter(({ isLost }) => isLost).map(({ id }) => id));
    const others = bank.held().filter((id) => !lost.has(id) && !this.#left.some((entry) => entry.completionId === id));
    if (others.length > 0) this.journal.breach("limits", `budget holds of ended completions: ${others.join()}`);
  }

  /** Checks the final state. */
  async #rest(): Promise<void> {
    const { bank } = this.#around;
    const watch = this.journal;
    // All pending events have happened.
    this.#calm();
    // A process may have been killed after it had written them.
    const left = this.#left.filter(({ completionId }) => !bank.entries.has(completionId));
    await bank.insert(JSON.parse(JSON.stringify(left)) as NewLedgerEntry[]);
    await bank.reap();
    for (const tracked of this.#ended) judgeEntry({ ...tracked, bank, watch });
    const known = new Set([...this.#journeys.values()].map(({ id }) => id));
    for (const id of bank.entries.keys())
      if (!known.has(id)) watch.breach("ledger", `entry of an unknown completion: ${id}`);
    if (bank.held().length > 0) watch.breach("limits", `budget holds remain: ${bank.held().join()}`);
    bank.audit();
    if (this.#clock.pending > 0) watch.breach("end", `${this.#clock.pending} timers are pending`);
  }
}

/** Whether the provider call of an ended completion continues, or continued, for its token counts. */
function isListenedTo({ calls }: Journey): boolean {
  const last = calls.at(-1);
  return last !== undefined && (last.state === "open" || last.outlived);
}

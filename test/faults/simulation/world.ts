import type { NewLedgerEntry } from "../../../src/core/ledger.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { Bank } from "./bank.ts";
import { Chance } from "./chance.ts";
import { drawGrants, drawHabits, drawModels, drawRequest, drawWeather, MAX_TOTAL_MS, UPSTREAMS } from "./draw.ts";
import { answer } from "./entrance.ts";
import { happen, type Restart } from "./happenings.ts";
import { Journey } from "./journey.ts";
import { judgeEnd, judgeEntry } from "./judge.ts";
import { KeyDirectory } from "./key-directory.ts";
import { type ModelSpec, SimulatedProcess, type Surroundings } from "./process.ts";
import type { Weather } from "./scripts.ts";
import { Journal } from "./watch.ts";

/** Nothing lasts longer than this: the longest time limit, a reader who reads nothing, and the databases. */
const MAX_LIFE_MS = MAX_TOTAL_MS + 31_000 + 10_000;
/** As long as money is held for a completion whose process is gone. */
const HOLD_MS = MAX_TOTAL_MS + 3_000 + 60_000 + 1_000;
const RETRY_START_MS = 500;

/** What a completion belongs to. */
interface Lived {
  readonly journey: Journey;
  readonly process: SimulatedProcess;
}

/** One world: processes, databases, upstream models and callers on one clock, all of it drawn from one seed. */
export class World {
  readonly journal: Journal;
  readonly #clock: FakeClock;
  readonly #chance: Chance;
  readonly #around: Surroundings;
  readonly #weather = new Map<string, Weather>();
  readonly #journeys = new Map<string, Journey>();
  readonly #ended: Lived[] = [];
  readonly #open = new Set<Lived>();
  readonly #processes = new Set<SimulatedProcess>();
  /** The one that takes new calls. */
  #front: SimulatedProcess | undefined;
  /** Entries that a process had to leave behind: the next start writes them. */
  #left: NewLedgerEntry[] = [];
  #specs: readonly ModelSpec[];
  #ending = 0;
  #toCome: number;
  readonly #counts = { processes: 0, calls: 0, journeys: 0 };
  #isCalm = false;

  constructor(seed: string, size: number, counts: Map<string, number>) {
    this.#chance = new Chance(seed);
    this.#toCome = size;
    // Now and then a month ends.
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
    this.#around = { clock, sky, bank: new Bank(clock, watch), keys, burstMs: chance.pick([1_000, 10_000, 60_000]) };
  }

  /** Lives through it, to its rest. Every breach is in the journal. */
  async run(): Promise<void> {
    this.#start();
    const meanMs = this.#chance.pick([3, 15, 40, 120, 400]);
    this.#expectCaller(meanMs);
    this.#expectHappening(Math.min(10 * meanMs, 2_000));
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

  /** Everything that was written down, for two runs to be compared. */
  written(): string {
    return JSON.stringify([...this.#around.bank.entries.values()]);
  }

  /** One timer after the other, and after each everything that can go on goes on. */
  async #until(isOver: () => boolean): Promise<void> {
    let lateMs = Infinity;
    await this.#settle();
    while (!isOver()) {
      if (!this.#clock.step()) return this.journal.breach("end", "nothing will ever happen again");
      await this.#settle();
      const active = [...this.#processes].reduce((sum, { calls }) => sum + calls.active, 0);
      if (active !== this.#open.size) this.journal.breach("end", `${active} calls are open of ${this.#open.size}`);
      const nowMs = this.#clock.monotonic();
      if (this.#toCome === 0) lateMs = Math.min(lateMs, nowMs + 2 * MAX_LIFE_MS);
      if (nowMs <= lateMs) continue;
      for (const { journey } of this.#open) this.journal.breach("end", "it never ends", journey.number);
      return this.journal.breach("end", "it never comes to rest");
    }
  }

  /** Everything that can go on does: ledgers gather their batches for a turn of the real event loop. */
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
    // As on the disk.
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
      // Nobody listens: the caller comes again.
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
    const journey = new Journey({ number, key: keys.pick(), request, isStream, habits: drawHabits(chance) });
    const lived = { journey, process };
    this.#journeys.set(String(number), journey);
    this.#open.add(lived);
    answer(process, journey, { clock, chance, keys, watch }).then(
      () => {
        this.#open.delete(lived);
        this.#ended.push(lived);
        return judgeEnd({ ...lived, bank: this.#around.bank, watch });
      },
      (error: unknown) => watch.breach("end", String(error), number),
    );
  }

  #expectHappening(meanMs: number): void {
    this.#clock.after(this.#chance.between(0, 2 * meanMs), () => {
      if (this.#isCalm || this.#toCome === 0) return;
      const { bank, keys } = this.#around;
      const [clock, chance, watch, weather] = [this.#clock, this.#chance, this.journal, this.#weather];
      const reload = (): void => this.#reload();
      happen({ clock, chance, watch, bank, keys, weather, reload, restart: (kind) => this.#restart(kind) });
      this.#expectHappening(meanMs);
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
    process.kill();
    this.#processes.delete(process);
    const isAway = process.ledger.state().away;
    for (const lived of this.#open) {
      if (lived.process !== process) continue;
      lived.journey.isLost = true;
      lived.journey.hangUp();
      this.#open.delete(lived);
    }
    for (const { journey, process: its } of this.#ended) {
      if (its !== process || !journey.isAdmitted || this.#around.bank.entries.has(journey.id)) continue;
      // Nobody else knew of it. With the database there, the end is not told before it is written down, but for that of a
      // completion whose provider is still listened to.
      if (isAway || isListenedTo(journey)) journey.isLost = true;
    }
  }

  /** From now on nothing goes wrong. */
  #calm(): void {
    this.#isCalm = true;
    const { bank, keys } = this.#around;
    Object.assign(bank, { state: "well", delayMs: 0 });
    keys.setHealth({ isAway: false, delayMs: 0 });
  }

  /** Money is held for completions whose process is gone, for a while, and for nobody else. */
  async #expectHolds(): Promise<void> {
    this.#calm();
    const { bank } = this.#around;
    await bank.reap();
    const lost = new Set([...this.#journeys.values()].filter(({ isLost }) => isLost).map(({ id }) => id));
    const others = bank.held().filter((id) => !lost.has(id) && !this.#left.some((entry) => entry.completionId === id));
    if (others.length > 0) this.journal.breach("limits", `money is held for ${others.join()}, which are over`);
  }

  /** All is over: what is left is what was promised. */
  async #rest(): Promise<void> {
    const { bank } = this.#around;
    const watch = this.journal;
    // What was on its way to happen has happened since.
    this.#calm();
    await bank.insert(JSON.parse(JSON.stringify(this.#left)) as NewLedgerEntry[]);
    await bank.reap();
    for (const lived of this.#ended) judgeEntry({ ...lived, bank, watch });
    const known = new Set([...this.#journeys.values()].map(({ id }) => id));
    for (const id of bank.entries.keys()) if (!known.has(id)) watch.breach("ledger", `nobody asked for ${id}`);
    if (bank.held().length > 0) watch.breach("limits", `money is held for ${bank.held().join()}`);
    bank.audit();
    if (this.#clock.pending > 0) watch.breach("end", `${this.#clock.pending} timers are left`);
  }
}

/** Whether the provider of a completion that is over is, or was, still listened to. */
function isListenedTo({ calls }: Journey): boolean {
  const last = calls.at(-1);
  return last !== undefined && (last.state === "open" || last.outlived);
}

import { type Clock, monthOf } from "../../../src/core/clock.ts";
import type { NewLedgerEntry } from "../../../src/core/ledger.ts";
import type { LedgerStore, Note } from "../../../src/ledger/ledger-store.ts";
import type { BudgetDecision, BudgetDemand, BudgetStore } from "../../../src/limits/budgets.ts";
import type { Watch } from "./watch.ts";

/** State of the database: available, unavailable, or executing statements whose response is lost. */
export type BankState = "well" | "away" | "deaf";

interface Hold {
  readonly subjects: readonly string[];
  readonly month: string;
  readonly amount: number;
  readonly expiresAtMs: number;
}

interface Spending {
  spent: number;
  held: number;
  /** The largest limit so far. */
  limit: number;
}

/** Maximum latency. */
export const MAX_BANK_DELAY_MS = 400;

/** An in-memory ledger and budgets, shared by all processes as a database. Checks the statements. */
export class Bank implements Pick<LedgerStore, "insert" | "begin">, BudgetStore {
  state: BankState = "well";
  delayMs = 0;
  readonly entries = new Map<string, NewLedgerEntry>();
  /** Completions that were noted at their beginning. */
  readonly begun = new Set<string>();
  readonly #clock: Clock;
  readonly #watch: Watch;
  /** Entries whose insert was acknowledged: they may not be inserted again. */
  readonly #acknowledged = new Set<string>();
  readonly #holds = new Map<string, Hold>();
  readonly #spending = new Map<string, Spending>();
  readonly #uncancelled = new Set<string>();

  constructor(clock: Clock, watch: Watch) {
    this.#clock = clock;
    this.#watch = watch;
  }

  async begin(note: Note | undefined): Promise<void> {
    await this.#travel();
    for (const { completionId } of note?.entries ?? []) this.begun.add(completionId);
    this.#answer();
  }

  async insert(entries: readonly NewLedgerEntry[]): Promise<void> {
    await this.#travel();
    const ids = new Set<string>();
    for (const { completionId } of entries) {
      if (ids.has(completionId)) this.#watch.breach("ledger", `${completionId} occurs twice in one batch`);
      if (this.#acknowledged.has(completionId)) this.#watch.breach("ledger", `${completionId} was written again`);
      ids.add(completionId);
    }
    for (const entry of entries) this.#write(entry);
    this.#answer();
    for (const id of ids) this.#acknowledged.add(id);
  }

  async hold(demand: BudgetDemand): Promise<BudgetDecision> {
    await this.#travel();
    this.#cancelAll();
    const decision = this.#decide(demand);
    this.#answer();
    return decision;
  }

  async cancel(id: string): Promise<void> {
    this.#uncancelled.add(id);
    await this.#travel();
    this.#cancelAll();
  }

  async reap(): Promise<number> {
    await this.#travel();
    this.#cancelAll();
    let reaped = 0;
    for (const [id, { expiresAtMs }] of this.#holds) {
      if (expiresAtMs > this.#clock.now()) continue;
      this.#release(id);
      reaped += 1;
    }
    return reaped;
  }

  /** IDs of the completions with holds. */
  held(): string[] {
    return [...this.#holds.keys()];
  }

  /** Compares each subject's spending with the cost of its entries, and the held amounts with the holds. */
  audit(): void {
    const spent = new Map<string, number>();
    for (const entry of this.entries.values())
      for (const subject of subjectsOf(entry)) spent.set(subject, (spent.get(subject) ?? 0) + entry.costMicroUsd);
    const booked = new Map<string, number>();
    const held = [...this.#holds.values()].reduce((sum, { subjects, amount }) => sum + subjects.length * amount, 0);
    let heldBooked = 0;
    for (const [name, spending] of this.#spending) {
      const [subject] = name.split(" ") as [string];
      booked.set(subject, (booked.get(subject) ?? 0) + spending.spent);
      heldBooked += spending.held;
    }
    for (const [subject, amount] of spent)
      if (booked.get(subject) !== amount)
        this.#watch.breach(
          "ledger",
          `${subject} has ${booked.get(subject)} booked as spent, but its entries cost ${amount}`,
        );
    if (held !== heldBooked) this.#watch.breach("limits", `${heldBooked} are booked as held, but holds have ${held}`);
  }

  async #travel(): Promise<void> {
    const { delayMs } = this;
    if (delayMs > 0) await new Promise<void>((resolve) => void this.#clock.after(delayMs, resolve));
    if (this.state === "away") throw new Error("the database is away");
  }

  /** After the statement was executed. */
  #answer(): void {
    if (this.state === "deaf") throw new Error("the database's response is lost");
  }

  #decide({ id, holds, amountMicroUsd, lastsMs, extends: extended = false }: BudgetDemand): BudgetDecision {
    const month = monthOf(this.#clock.now());
    const before = this.#holds.get(id);
    const takenOf = (subject: string): number => {
      const { spent, held } = this.#spendingOf(subject, month);
      return spent + held;
    };
    const isLost = extended && before?.month !== month;
    const full = holds.find(
      ({ subject, limitMicroUsd }) => isLost || takenOf(subject) + amountMicroUsd > limitMicroUsd,
    );
    if (full !== undefined) return { admitted: false, ...full, takenMicroUsd: takenOf(full.subject) };
    if (before !== undefined && !extended) this.#watch.breach("limits", `${id} has a second budget hold`);
    if (extended) this.#watch.count("holds that were extended");
    if (this.entries.has(id)) this.#watch.breach("limits", `${id} has a budget hold after its end`);
    for (const { subject, limitMicroUsd } of holds) {
      const spending = this.#spendingOf(subject, month);
      spending.held += amountMicroUsd;
      spending.limit = Math.max(spending.limit, limitMicroUsd);
    }
    const expiresAtMs = this.#clock.now() + lastsMs;
    const subjects = holds.map(({ subject }) => subject);
    const amount = amountMicroUsd + (before?.amount ?? 0);
    this.#holds.set(id, { subjects, month, amount, expiresAtMs: before?.expiresAtMs ?? expiresAtMs });
    return { admitted: true };
  }

  #write(entry: NewLedgerEntry): void {
    const { completionId: id, costMicroUsd } = entry;
    if (this.entries.has(id)) return;
    this.entries.set(id, entry);
    const hold = this.#release(id);
    if (hold !== undefined && costMicroUsd > hold.amount)
      this.#watch.breach("limits", `${id} cost ${costMicroUsd}, but its hold was ${hold.amount}`);
    const month = hold?.month ?? monthOf(entry.startedAtMs);
    for (const subject of subjectsOf(entry)) {
      const spending = this.#spendingOf(subject, month);
      spending.spent += costMicroUsd;
      if (spending.limit > 0 && hold !== undefined && spending.spent + spending.held > spending.limit)
        this.#watch.breach("limits", `${subject} has spent ${spending.spent} of ${spending.limit}`);
    }
  }

  #cancelAll(): void {
    for (const id of this.#uncancelled) this.#release(id);
    this.#uncancelled.clear();
  }

  #release(id: string): Hold | undefined {
    const hold = this.#holds.get(id);
    if (hold === undefined) return undefined;
    this.#holds.delete(id);
    for (const subject of hold.subjects) this.#spendingOf(subject, hold.month).held -= hold.amount;
    return hold;
  }

  #spendingOf(subject: string, month: string): Spending {
    const name = `${subject} ${month}`;
    let spending = this.#spending.get(name);
    if (spending === undefined) this.#spending.set(name, (spending = { spent: 0, held: 0, limit: 0 }));
    return spending;
  }
}

function subjectsOf({ keyId, keyFamilyId = keyId, accountId }: NewLedgerEntry): readonly [string, string] {
  return [`key:${keyFamilyId}`, `account:${accountId}`];
}

import type { AttributionLimits } from "../../../src/core/attribution.ts";
import { type BudgetPeriod, type Clock, monthOf, periodAt } from "../../../src/core/clock.ts";
import type { NewLedgerEntry } from "../../../src/core/ledger.ts";
import type { LedgerStore, Note } from "../../../src/ledger/ledger-store.ts";
import { isAttributed, subjectOf } from "../../../src/limits/attributed.ts";
import type { BudgetDecision, BudgetDemand, BudgetHold, BudgetStore } from "../../../src/limits/budgets.ts";
import type { Watch } from "./watch.ts";

/** State of the database: available, unavailable, or executing statements whose response is lost. */
export type BankState = "well" | "away" | "deaf";

/** What one subject may spend in one period. */
interface Budget {
  readonly subject: string;
  readonly period: string;
}

interface Hold {
  readonly budgets: readonly Budget[];
  readonly amount: number;
  readonly expiresAtMs: number;
}

interface Spending {
  spent: number;
  held: number;
  /** The largest limit so far. */
  limit: number;
  /** In place of the limit that the key gives to all of its end users or sessions. */
  own: number | undefined;
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
  readonly #limitsOf: (keyId: string) => AttributionLimits;
  /** Entries whose insert was acknowledged: they may not be inserted again. */
  readonly #acknowledged = new Set<string>();
  readonly #holds = new Map<string, Hold>();
  readonly #spending = new Map<string, Spending>();
  readonly #uncancelled = new Set<string>();

  /** `limitsOf`: those of the end users and sessions of a key, which do not change. */
  constructor({
    clock,
    watch,
    limitsOf,
  }: {
    readonly clock: Clock;
    readonly watch: Watch;
    readonly limitsOf: (keyId: string) => AttributionLimits;
  }) {
    this.#clock = clock;
    this.#watch = watch;
    this.#limitsOf = limitsOf;
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

  /** Gives an end user or a session another budget until its period ends; undefined: that of the key again. */
  setOwn(subject: string, period: BudgetPeriod, limitMicroUsd: number | undefined): void {
    this.#spendingOf({ subject, period: periodAt(this.#clock.now(), period) }).own = limitMicroUsd;
  }

  /** IDs of the completions with holds. */
  held(): string[] {
    return [...this.#holds.keys()];
  }

  /** Compares each subject's spending with the cost of its entries, and the held amounts with the holds. */
  audit(): void {
    const spent = new Map<string, number>();
    for (const entry of this.entries.values())
      for (const { subject } of budgetsOf(entry)) spent.set(subject, (spent.get(subject) ?? 0) + entry.costMicroUsd);
    const booked = new Map<string, number>();
    const held = [...this.#holds.values()].reduce((sum, { budgets, amount }) => sum + budgets.length * amount, 0);
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
    const nowMs = this.#clock.now();
    const before = this.#holds.get(id);
    const asked = holds.map((hold) => {
      const budget = { subject: hold.subject, period: periodAt(nowMs, hold.period ?? "month") };
      const spending = this.#spendingOf(budget);
      return { hold, budget, spending, limit: spending.own ?? hold.limitMicroUsd };
    });
    for (const { hold } of asked) this.#judgeHold(hold);
    const isHeld = ({ subject, period }: Budget): boolean =>
      before?.budgets.some((one) => one.subject === subject && one.period === period) === true;
    const full = asked.find(
      ({ budget, spending, limit }) =>
        (extended && !isHeld(budget)) || spending.spent + spending.held + amountMicroUsd > limit,
    );
    if (full !== undefined) {
      const { hold, spending, limit } = full;
      const kind = spending.own === undefined ? "the budget" : "an own budget";
      if (isAttributed(hold.subject))
        this.#watch.count(`refused by ${kind} of ${hold.period === "session" ? "a session" : "an end user"}`);
      return { admitted: false, ...hold, limitMicroUsd: limit, takenMicroUsd: spending.spent + spending.held };
    }
    if (before !== undefined && !extended) this.#watch.breach("limits", `${id} has a second budget hold`);
    if (extended) this.#watch.count("holds that were extended");
    if (this.entries.has(id)) this.#watch.breach("limits", `${id} has a budget hold after its end`);
    for (const { spending, limit } of asked) {
      if (spending.own !== undefined) this.#watch.count("admitted under an own budget");
      spending.held += amountMicroUsd;
      spending.limit = Math.max(spending.limit, limit);
    }
    const expiresAtMs = before?.expiresAtMs ?? nowMs + lastsMs;
    const amount = amountMicroUsd + (before?.amount ?? 0);
    this.#holds.set(id, { budgets: asked.map(({ budget }) => budget), amount, expiresAtMs });
    return { admitted: true };
  }

  #write(entry: NewLedgerEntry): void {
    const { completionId: id, costMicroUsd } = entry;
    if (this.entries.has(id)) return;
    this.entries.set(id, entry);
    const hold = this.#release(id);
    if (hold !== undefined && costMicroUsd > hold.amount)
      this.#watch.breach("limits", `${id} cost ${costMicroUsd}, but its hold was ${hold.amount}`);
    this.#judgeBudgets(entry, hold);
    for (const budget of budgetsOf(entry)) {
      const { subject } = budget;
      const spending = this.#spendingOf(hold?.budgets.find((held) => held.subject === subject) ?? budget);
      spending.spent += costMicroUsd;
      if (spending.limit > 0 && hold !== undefined && spending.spent + spending.held > spending.limit)
        this.#watch.breach("limits", `${subject} has spent ${spending.spent} of ${spending.limit}`);
    }
  }

  /** Checks that a hold of an end user or a session has the limit of its key. */
  #judgeHold({ subject, limitMicroUsd, period }: BudgetHold): void {
    if (!isAttributed(subject)) return;
    const [, keyFamilyId = ""] = subject.split(":");
    const { endUserBudgetMicroUsd, sessionBudgetMicroUsd } = this.#limitsOf(keyFamilyId);
    const right = period === "session" ? sessionBudgetMicroUsd : endUserBudgetMicroUsd;
    if (limitMicroUsd !== right) this.#watch.breach("limits", `${subject} has ${limitMicroUsd}, expected ${right}`);
  }

  /** Checks that the entry is charged to the budgets of its end user and its session, of which it has held, and to no others. */
  #judgeBudgets(
    { completionId, keyId, keyFamilyId = keyId, attribution = {}, budgets = [] }: NewLedgerEntry,
    hold: Hold | undefined,
  ): void {
    const { endUserBudgetMicroUsd, endUserBudgetPeriod = "day", sessionBudgetMicroUsd } = this.#limitsOf(keyId);
    const { endUser, session } = attribution;
    const expected: string[] = [];
    if (endUser !== undefined && endUserBudgetMicroUsd !== undefined)
      expected.push(`${subjectOf("end_user", keyFamilyId, endUser)} ${endUserBudgetPeriod}`);
    if (session !== undefined && sessionBudgetMicroUsd !== undefined)
      expected.push(`${subjectOf("session", keyFamilyId, session)} session`);
    const charged = budgets.map(({ subject, period }) => `${subject} ${period}`).join();
    if (charged !== expected.join())
      this.#watch.breach("limits", `${completionId} is charged to ${charged}, expected ${expected.join()}`);
    for (const { subject } of budgets)
      if (hold?.budgets.some((held) => held.subject === subject) === false)
        this.#watch.breach("limits", `${completionId} has no hold of ${subject}`);
  }

  #cancelAll(): void {
    for (const id of this.#uncancelled) this.#release(id);
    this.#uncancelled.clear();
  }

  #release(id: string): Hold | undefined {
    const hold = this.#holds.get(id);
    if (hold === undefined) return undefined;
    this.#holds.delete(id);
    for (const budget of hold.budgets) this.#spendingOf(budget).held -= hold.amount;
    return hold;
  }

  #spendingOf({ subject, period }: Budget): Spending {
    const name = `${subject} ${period}`;
    let spending = this.#spending.get(name);
    if (spending === undefined) this.#spending.set(name, (spending = { spent: 0, held: 0, limit: 0, own: undefined }));
    return spending;
  }
}

/** What an entry is charged to, in the periods of its start. */
function budgetsOf({ keyId, keyFamilyId = keyId, accountId, startedAtMs, budgets = [] }: NewLedgerEntry): Budget[] {
  const month = monthOf(startedAtMs);
  return [
    { subject: `key:${keyFamilyId}`, period: month },
    { subject: `account:${accountId}`, period: month },
    ...budgets.map(({ subject, period }) => ({ subject, period: periodAt(startedAtMs, period) })),
  ];
}

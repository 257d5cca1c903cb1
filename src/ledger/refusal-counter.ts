import type { Clock } from "../core/clock.ts";
import { NO_CALLER } from "../core/ledger.ts";
import { STEP_MS } from "./usage-store.ts";
import { type RefusalCount, type RefusalStore, type RefusedRequest, UNKNOWN_MODEL } from "./refusal-store.ts";

/** Interval of writes. */
const FLUSH_MS = 2_000;
/** Interval after a failed write. */
const RETRY_MS = 10_000;
/** Rows of a write at most: completions' writes wait for its transaction. */
const MAX_BATCH = { counts: 200, samples: 100 } as const;
/**
 * Combinations of key, model and failure that are counted apart in one minute: of a key, of an account, and in all. Further ones of a key
 * are counted without model, all others without key and model.
 */
const MAX_NAMES = { key: 50, account: 250, all: 500 } as const;
/** Unwritten counts at most; later ones are added up by the hour, without key and model. */
const MAX_PENDING = 5_000;
/** Samples of a minute: of a key and failure, of an account, and in all. */
const MAX_SAMPLES = { key: 5, account: 25, all: 100 } as const;
/** Unwritten samples at most; later ones are dropped. */
const MAX_WAITING_SAMPLES = 1_000;

/** What a refused request is counted by, except for its number. */
export type RefusalFacts = Omit<RefusalCount, "refused">;

export interface RefusalCounterPorts {
  readonly store: Pick<RefusalStore, "add">;
  readonly clock: Clock;
  /** Called when writes begin to fail, with the cause, and when they succeed again, with undefined. */
  readonly onTrouble: (trouble: { readonly cause: unknown } | undefined) => void;
}

/**
 * Counts the refused requests of this process and collects samples of them, and writes both at intervals. A flood of refusals costs one
 * addition in memory for each, and a bounded number of rows. A write that fails is repeated; one whose answer was lost may count twice.
 */
export class RefusalCounter {
  readonly #ports: RefusalCounterPorts;
  readonly #counts = new Map<string, Counted>();
  #samples: RefusedRequest[] = [];
  #minute = new MinuteLimits(-1);
  #cancelTimer: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(ports: RefusalCounterPorts) {
    this.#ports = ports;
  }

  /** Counts a refused request. Returns whether a sample of it is wanted. */
  count(facts: RefusalFacts): boolean {
    const minute = Math.floor(facts.atMs / STEP_MS.minute);
    if (minute !== this.#minute.minute) this.#minute = new MinuteLimits(minute);
    const apart = [facts, { ...facts, model: UNKNOWN_MODEL }].find((one) => this.#minute.isCountedApart(one));
    if (apart === undefined) this.#addOther(withoutNames(facts), 1);
    else this.#add(nameOf(apart), apart, 1);
    this.#plan(FLUSH_MS);
    return this.#samples.length < MAX_WAITING_SAMPLES && this.#minute.wantsSample(facts);
  }

  /** Adds a sample that `count` wanted. */
  sample(request: RefusedRequest): void {
    this.#samples.push(request);
  }

  /** Writes what is pending. Rejects when that fails; it stays pending. */
  flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  /** Writes what is pending, and nothing more. Returns the number of refusals that could not be written. */
  async close(): Promise<number> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    await this.#writing?.catch(() => undefined);
    await this.flush().catch(() => undefined);
    return this.#counts.values().reduce((sum, { refused }) => sum + refused, 0);
  }

  #add(name: string, facts: RefusalFacts, refused: number): void {
    const known = this.#counts.get(name);
    if (known !== undefined) known.refused += refused;
    else if (this.#counts.size < MAX_PENDING) this.#counts.set(name, { ...facts, refused });
    else this.#addOther({ ...withoutNames(facts), atMs: facts.atMs - (facts.atMs % STEP_MS.hour) }, refused);
  }

  #addOther(facts: RefusalFacts, refused: number): void {
    const name = nameOf(facts);
    const known = this.#counts.get(name);
    if (known === undefined) this.#counts.set(name, { ...facts, refused });
    else known.refused += refused;
  }

  #plan(delayMs: number): void {
    if (this.#cancelTimer !== undefined || this.#isClosed) return;
    this.#cancelTimer = this.#ports.clock.after(delayMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    try {
      await this.flush();
      if (this.#isFailing) this.#ports.onTrouble(undefined);
      this.#isFailing = false;
    } catch (cause) {
      if (!this.#isFailing) this.#ports.onTrouble({ cause });
      this.#isFailing = true;
    }
    this.#cancelTimer = undefined;
    if (this.#counts.size > 0) this.#plan(this.#isFailing ? RETRY_MS : FLUSH_MS);
  }

  async #writeAll(): Promise<void> {
    const { store } = this.#ports;
    while (this.#counts.size > 0 || this.#samples.length > 0) {
      const taken = [...this.#counts.entries().take(MAX_BATCH.counts)];
      const counts = taken.map(([, count]) => count);
      const samples = this.#samples.slice(0, MAX_BATCH.samples);
      for (const [name] of taken) this.#counts.delete(name);
      this.#samples = this.#samples.slice(samples.length);
      try {
        await store.add(counts, samples);
      } catch (error) {
        for (const { refused, ...facts } of counts) this.#add(nameOf(facts), facts, refused);
        this.#samples = [...samples, ...this.#samples];
        throw error;
      }
    }
  }
}

type Counted = { -readonly [F in keyof RefusalCount]: RefusalCount[F] };

/** The minute, and what is counted apart in it. */
function nameOf({ atMs, accountId, keyId, model, outcome }: RefusalFacts): string {
  return `${Math.floor(atMs / STEP_MS.minute)} ${accountId} ${keyId} ${model} ${outcome}`;
}

function withoutNames({ atMs, outcome }: RefusalFacts): RefusalFacts {
  return { atMs, outcome, accountId: NO_CALLER, keyId: NO_CALLER, model: UNKNOWN_MODEL };
}

/** What is counted apart, and sampled, in one minute. */
class MinuteLimits {
  readonly minute: number;
  readonly #names = new Set<string>();
  /** Names by account, and by account and key. */
  readonly #named = new Map<string, number>();
  readonly #sampled = new Map<string, number>();
  #samples = 0;

  constructor(minute: number) {
    this.minute = minute;
  }

  isCountedApart(facts: RefusalFacts): boolean {
    const name = nameOf(facts);
    if (this.#names.has(name)) return true;
    if (this.#names.size >= MAX_NAMES.all) return false;
    const { accountId, keyId, model } = facts;
    const ofKey = `${accountId} ${keyId}`;
    const [key, account] = [this.#named.get(ofKey) ?? 0, this.#named.get(accountId) ?? 0];
    // Those without model are few, one for each failure.
    if ((key >= MAX_NAMES.key && model !== UNKNOWN_MODEL) || account >= MAX_NAMES.account) return false;
    this.#named.set(ofKey, key + 1).set(accountId, account + 1);
    this.#names.add(name);
    return true;
  }

  /** Counts a sample if there is room for it. */
  wantsSample({ accountId, keyId, outcome }: RefusalFacts): boolean {
    if (this.#samples >= MAX_SAMPLES.all) return false;
    const [ofKey, ofAccount] = [`${accountId} ${keyId} ${outcome}`, accountId];
    const [key, account] = [this.#sampled.get(ofKey) ?? 0, this.#sampled.get(ofAccount) ?? 0];
    if (key >= MAX_SAMPLES.key || account >= MAX_SAMPLES.account) return false;
    this.#sampled.set(ofKey, key + 1).set(ofAccount, account + 1);
    this.#samples += 1;
    return true;
  }
}

import type { Clock } from "../core/clock.ts";
import { NO_CALLER } from "../core/ledger.ts";
import { STEP_MS } from "./usage-store.ts";
import { type RefusalCount, type RefusalStore, type RefusedRequest, UNKNOWN_MODEL } from "./refusal-store.ts";

/** Interval of writes. */
const FLUSH_MS = 2_000;
/** Interval after a failed write. */
const RETRY_MS = 10_000;
/** Limit of rows per write, because writes of completions wait for its transaction. */
const MAX_BATCH = { counts: 200, samples: 100 } as const;
/**
 * Limits of combinations of key, model and failure with their own count in one minute: per key, per account, and in total. Beyond the
 * limit of a key, its refusals are counted without the model; beyond the other limits, without key and model.
 */
const MAX_NAMES = { key: 50, account: 250, all: 500 } as const;
/** Limit of unwritten counts. Later ones are summed by the hour, without key and model. */
const MAX_PENDING = 5_000;
/** Limits of samples per minute: per key and failure, per account, and in total. */
const MAX_SAMPLES = { key: 5, account: 25, all: 100 } as const;
/** Limit of unwritten samples. Later ones are dropped. */
const MAX_WAITING_SAMPLES = 1_000;

/** The facts by which a refused request is counted. */
export type RefusalFacts = Omit<RefusalCount, "refused">;

export interface RefusalCounterPorts {
  readonly store: Pick<RefusalStore, "add">;
  readonly clock: Clock;
  /** Called when writes begin to fail, with the cause, and when they succeed again, with undefined. */
  readonly onTrouble: (trouble: { readonly cause: unknown } | undefined) => void;
}

/**
 * Counts the refused requests of this process, collects samples of them, and writes both at intervals. Each refusal of a flood costs one
 * addition in memory, and all together a bounded number of rows. A failed write is repeated; if only its answer was lost, it counts
 * twice.
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

  /** Writes pending counts and samples. Rejects when that fails; then they stay pending. */
  flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  /** Writes pending counts and samples for the last time. Returns the number of refusals that could not be written. */
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

/** Name of a count: the minute, and the combination that has its own count in it. */
function nameOf({ atMs, accountId, keyId, model, outcome }: RefusalFacts): string {
  return `${Math.floor(atMs / STEP_MS.minute)} ${accountId} ${keyId} ${model} ${outcome}`;
}

function withoutNames({ atMs, outcome }: RefusalFacts): RefusalFacts {
  return { atMs, outcome, accountId: NO_CALLER, keyId: NO_CALLER, model: UNKNOWN_MODEL };
}

/** Applies MAX_NAMES and MAX_SAMPLES in one minute. */
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
    // Names without a model are not limited per key: there is only one for each failure.
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

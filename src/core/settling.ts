/** Completions whose callers have their end, and whose ledger entries wait for the providers' counts. */
export class Settling {
  readonly #open = new Map<Promise<void>, () => void>();
  #cut = false;

  /** `work` never outlasts the models' time to settle by more than a ledger entry takes; `giveUp` ends that time. */
  add(work: Promise<void>, giveUp: () => void): void {
    const done = work.catch(() => undefined).finally(() => this.#open.delete(done));
    this.#open.set(done, giveUp);
    if (this.#cut) giveUp();
  }

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when none is left. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.keys());
  }

  /** Providers are heard no longer, from now on either: what is not counted is booked by its bound. */
  cut(): void {
    this.#cut = true;
    for (const giveUp of this.#open.values()) giveUp();
  }
}

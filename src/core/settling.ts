/** Completions that have ended for the caller while their ledger entries wait for the providers' token counts. */
export class Settling {
  readonly #open = new Map<Promise<void>, () => void>();
  #cut = false;

  /** Adds a completion. `work` ends within `settle_ms` of the model plus one ledger write; `giveUp` ends it earlier. */
  add(work: Promise<void>, giveUp: () => void): void {
    const done = work.catch(() => undefined).finally(() => this.#open.delete(done));
    this.#open.set(done, giveUp);
    if (this.#cut) giveUp();
  }

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when the ledger entries of all added completions have been written. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.keys());
  }

  /** Stops reading from providers, for open and for later completions. Entries without a token count are booked as estimates. */
  cut(): void {
    this.#cut = true;
    for (const giveUp of this.#open.values()) giveUp();
  }
}

/** Counts what each account has under way of something, so that it is never more than it may have. */
export class ConcurrencyLimit {
  /** How many each account has. */
  readonly most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.most = most;
  }

  /** Takes one. Returns what gives it back, to be called once; undefined when none is left. */
  take(accountId: string): (() => void) | undefined {
    const taken = this.#taken.get(accountId) ?? 0;
    if (taken >= this.most) return undefined;
    this.#taken.set(accountId, taken + 1);
    return () => {
      const left = this.#taken.get(accountId)! - 1;
      if (left === 0) this.#taken.delete(accountId);
      else this.#taken.set(accountId, left);
    };
  }
}

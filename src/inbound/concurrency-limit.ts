/** Counts what each holder (an account, a connection) has at the same time, and gives no more than the limit. */
export class ConcurrencyLimit {
  /** How many each holder may have. */
  readonly most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.most = most;
  }

  /** Takes one. Returns what gives it back, to be called once; undefined when none is left. */
  take(holder: string): (() => void) | undefined {
    const taken = this.#taken.get(holder) ?? 0;
    if (taken >= this.most) return undefined;
    this.#taken.set(holder, taken + 1);
    return () => {
      const left = this.#taken.get(holder)! - 1;
      if (left === 0) this.#taken.delete(holder);
      else this.#taken.set(holder, left);
    };
  }
}

/** How many values are kept for one account. */
const MAX_PER_ACCOUNT = 200;

/** How many values are kept for all accounts together. */
const MAX_TOTAL = 5_000;

/**
 * The latest values of each account, by ID. What is too much goes from the account that has most, the oldest first: an
 * account's values are never displaced by one that has fewer.
 */
export class AccountMemory<T> {
  readonly #values = new Map<string, T>();
  /** The IDs of each account's values, the oldest first. */
  readonly #ids = new Map<string, Set<string>>();

  /** Keeps a value; `id` must be new. */
  add(accountId: string, id: string, value: T): void {
    const own = this.#ids.get(accountId) ?? new Set();
    this.#ids.set(accountId, own);
    own.add(id);
    this.#values.set(id, value);
    if (own.size > MAX_PER_ACCOUNT) this.#forgetOldest(accountId);
    if (this.#values.size > MAX_TOTAL) this.#forgetOldest(this.#largest());
  }

  get(id: string): T | undefined {
    return this.#values.get(id);
  }

  /** All values, the oldest first. */
  values(): MapIterator<T> {
    return this.#values.values();
  }

  #largest(): string {
    let largest = "";
    let most = 0;
    for (const [accountId, { size }] of this.#ids) {
      if (size <= most) continue;
      most = size;
      largest = accountId;
    }
    return largest;
  }

  #forgetOldest(accountId: string): void {
    const own = this.#ids.get(accountId)!;
    const [oldest] = own;
    own.delete(oldest!);
    if (own.size === 0) this.#ids.delete(accountId);
    this.#values.delete(oldest!);
  }
}

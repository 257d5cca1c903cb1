import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { KeyGrant } from "./key-store.ts";
import { type KeyPrincipal, toPrincipal } from "./principal.ts";

const MAX_KNOWN = 50_000;

/** Possible difference between the clocks of two machines. */
const CLOCK_SKEW_MS = 60_000;

/** A key with the store's last answer about it. */
export interface KnownKey {
  readonly grant: KeyGrant;
  readonly principal: KeyPrincipal;
  /** From then on the store is asked again, by the clock's `monotonic`. */
  refreshAtMs: number;
}

/** A known key, as passed to another process. */
export interface ConfirmedKey {
  readonly hash: string;
  readonly grant: KeyGrant;
  /** Time of the store's answer, in Unix milliseconds. */
  readonly confirmedAtMs: number;
}

/** The keys that a process knows, by their hashes. */
export class KnownKeys {
  readonly #clock: Clock;
  readonly #staleLimitMs: number;
  readonly #entries = new BoundedMap<string, KnownKey>(MAX_KNOWN);
  #changes = 0;

  /** `staleLimitMs`: time for which a key works without a new answer of the store. */
  constructor(clock: Clock, staleLimitMs: number) {
    this.#clock = clock;
    this.#staleLimitMs = staleLimitMs;
  }

  get(hash: string): KnownKey | undefined {
    return this.#entries.get(hash);
  }

  /** Counts the times that a key was added or removed. */
  get changes(): number {
    return this.#changes;
  }

  set(hash: string, entry: KnownKey): void {
    if (!this.#entries.has(hash)) this.#changes += 1;
    this.#entries.set(hash, entry);
  }

  delete(hash: string): void {
    if (this.#entries.has(hash)) this.#changes += 1;
    this.#entries.delete(hash);
  }

  /** Whether an entry may be used while the store is unavailable. */
  isUsable({ principal }: KnownKey): boolean {
    return this.#clock.monotonic() - principal.confirmedAtMs <= this.#staleLimitMs;
  }

  /** All keys are to be confirmed again. */
  expireAll(): void {
    for (const entry of this.#entries.values()) entry.refreshAtMs = 0;
  }

  /** Whether a change of a key at this Unix time, by another machine's clock, may be later than the cached answer. */
  mayHaveMissed(hash: string, changedAtMs: number): boolean {
    const entry = this.#entries.get(hash);
    return entry === undefined || this.#toUnix(entry.principal.confirmedAtMs) <= changedAtMs + CLOCK_SKEW_MS;
  }

  /** Hashes of the keys whose last answer is older than this. */
  olderThan(ageMs: number): string[] {
    const sinceMs = this.#clock.monotonic() - ageMs;
    const old = [...this.#entries.values()].filter(({ principal }) => principal.confirmedAtMs < sinceMs);
    return old.map(({ principal }) => principal.hash);
  }

  /** The usable keys that were confirmed last, at most `limit`, distributed evenly among accounts. */
  list(limit: number): readonly ConfirmedKey[] {
    const usable = [...this.#entries.values()].filter((entry) => this.isUsable(entry));
    const latest = usable.toSorted((one, other) => other.principal.confirmedAtMs - one.principal.confirmedAtMs);
    const counts = new Map<string, number>();
    const ranked = latest.map((entry) => {
      const rank = counts.get(entry.principal.accountId) ?? 0;
      counts.set(entry.principal.accountId, rank + 1);
      return { entry, rank };
    });
    const listed = ranked.toSorted((one, other) => one.rank - other.rank).slice(0, limit);
    return listed.map(({ entry: { grant, principal } }) => {
      const { hash, confirmedAtMs } = principal;
      return { hash, grant, confirmedAtMs: Math.floor(this.#toUnix(confirmedAtMs)) };
    });
  }

  /** Adds keys that an earlier process knew, as far as they may still be used; each is confirmed with its first use. */
  restore(keys: readonly ConfirmedKey[]): readonly KnownKey[] {
    const nowMs = this.#clock.now();
    return keys.flatMap(({ hash, grant, confirmedAtMs }) => {
      // The clock was set back: their age is unknown.
      if (confirmedAtMs > nowMs + CLOCK_SKEW_MS || this.#entries.get(hash) !== undefined) return [];
      const ageMs = Math.max(nowMs - confirmedAtMs, 0);
      const principal = toPrincipal(grant, { hash, confirmedAtMs: this.#clock.monotonic() - ageMs });
      const entry = principal && { grant, principal, refreshAtMs: 0 };
      if (entry === undefined || !this.isUsable(entry)) return [];
      this.set(hash, entry);
      return [entry];
    });
  }

  #toUnix(monotonicMs: number): number {
    return this.#clock.now() - (this.#clock.monotonic() - monotonicMs);
  }
}

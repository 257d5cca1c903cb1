import { generateApiKey, hashApiKey } from "../../../src/access/api-key.ts";
import type { KeyLookup } from "../../../src/access/key-cache.ts";
import type { KeyGrant } from "../../../src/access/key-store.ts";
import type { Clock } from "../../../src/core/clock.ts";
import type { Limits } from "../../../src/core/principal.ts";
import type { Chance } from "./chance.ts";
import type { Watch } from "./watch.ts";

/** One key, as its owner sees it. */
export interface SimulatedKey {
  readonly id: string;
  readonly secret: string;
  readonly hash: string;
  grant: KeyGrant;
  revokedMs: number | undefined;
  /** Whether every process was notified at once. */
  isNotified: boolean;
}

/** Maximum latency of a look-up: longer than a process waits before it uses cached keys. */
export const MAX_LOOKUP_MS = 800;
/** Documented time until an unnotified revocation takes effect. */
const PROMISED_MS = 5_000;
/** How long callers continue to use a revoked key. */
const RECENTLY_MS = 10_000;
/** Documented time that cached keys work while the database is unavailable. */
const STALE_MS = 60_000;

/** The values of secrets do not matter, so all worlds share them. */
const secrets = Array.from({ length: 8 }, () => {
  const secret = generateApiKey();
  return { secret, hash: hashApiKey(secret) };
});

/** The keys of all processes, as in a database. Checks that revoked keys are refused. */
export class KeyDirectory implements KeyLookup {
  readonly keys: readonly SimulatedKey[];
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #watch: Watch;
  readonly #listeners = new Set<(hash: string | undefined) => void>();
  /** Look-ups in flight by key. */
  readonly #asked = new Map<string, number>();
  #isAway = false;
  #delayMs = 0;
  /** Start of the current healthy period. */
  #wellSinceMs = 0;

  constructor({ clock, chance, watch }: { clock: Clock; chance: Chance; watch: Watch }, grants: readonly KeyGrant[]) {
    this.#clock = clock;
    this.#chance = chance;
    this.#watch = watch;
    this.keys = grants.map((grant, index) => {
      return { id: grant.record.id, ...secrets[index]!, grant, revokedMs: undefined, isNotified: false };
    });
  }

  /** A key by its ID. A family has the ID of its first key. */
  find(id: string): SimulatedKey {
    return this.keys.find((key) => key.id === id)!;
  }

  subscribe(changed: (hash: string | undefined) => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** Sets the latency of look-ups, or makes them fail. */
  setHealth({ isAway, delayMs }: { readonly isAway: boolean; readonly delayMs: number }): void {
    if (!isAway && delayMs === 0 && (this.#isAway || this.#delayMs > 0)) this.#wellSinceMs = this.#clock.monotonic();
    this.#isAway = isAway;
    this.#delayMs = delayMs;
    if (isAway || delayMs > 0) this.#wellSinceMs = Infinity;
  }

  async findByHash(hash: string): Promise<KeyGrant | undefined> {
    // A delayed response may be outdated when it arrives.
    const before = this.#chance.percent(50) ? this.#read(hash) : undefined;
    if (this.#delayMs > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#clock.after(this.#delayMs, resolve);
      this.#asked.set(hash, (this.#asked.get(hash) ?? 0) + 1);
      await promise;
      this.#asked.set(hash, this.#asked.get(hash)! - 1);
    }
    if (this.#isAway) throw new Error("the database is away");
    return before ?? this.#read(hash);
  }

  /** Mostly a valid key; often one that was revoked recently. */
  pick(): SimulatedKey {
    const working = this.#working();
    const recentlyRevoked = this.keys.filter(
      ({ revokedMs = -Infinity }) => revokedMs > this.#clock.monotonic() - RECENTLY_MS,
    );
    if (recentlyRevoked.length > 0 && this.#chance.percent(25)) return this.#chance.pick(recentlyRevoked);
    return this.#chance.pick(working.length > 0 && this.#chance.percent(90) ? working : this.keys);
  }

  /** Revokes a key, unless it is the last valid one: mostly one with a look-up in flight. */
  revokeOne(): void {
    const working = this.#working();
    if (working.length < 2) return;
    const asked = working.filter(({ hash }) => (this.#asked.get(hash) ?? 0) > 0);
    const key = this.#chance.pick(asked.length > 0 && this.#chance.percent(70) ? asked : working);
    key.revokedMs = this.#clock.monotonic();
    key.grant = { ...key.grant, record: { ...key.grant.record, revokedAtMs: this.#clock.now() } };
    const notice = this.#chance.weighted({
      "with a notification": 6,
      "with a general notification": 2,
      "without notification": 2,
    });
    key.isNotified = notice === "with a notification";
    this.#watch.count(`keys revoked ${notice}`);
    this.#watch.note(`${key.id} is revoked ${notice}`);
    if (notice === "with a notification") this.#tell(key.hash);
    else if (notice === "with a general notification") this.#tell(undefined);
  }

  changeLimits(key: SimulatedKey, change: Partial<Limits>): void {
    const { keyFamilyId } = key.grant.record;
    this.#watch.note(`the keys of ${keyFamilyId} have new limits: ${JSON.stringify(change)}`);
    for (const each of this.keys) {
      const { record } = each.grant;
      if (record.keyFamilyId !== keyFamilyId) continue;
      each.grant = { ...each.grant, record: { ...record, limits: { ...record.limits, ...change } } };
      this.#tell(each.hash);
    }
  }

  /** Checks whether a request whose authentication began at `sinceMs` was rightly admitted with `key`. */
  judge(key: SimulatedKey, { sinceMs, journey }: { readonly sinceMs: number; readonly journey: number }): void {
    const { revokedMs, isNotified, grant } = key;
    const { expiresAtMs } = grant.record;
    if (expiresAtMs !== undefined && expiresAtMs <= this.#clock.now())
      this.#watch.breach("keys", `${key.id} has expired and was accepted`, journey);
    // At the same instant the order is undefined.
    if (revokedMs === undefined || sinceMs <= revokedMs) return;
    // Without a notification the cached record is used until it expires.
    const holdsMs = isNotified ? 0 : this.#wellSinceMs <= revokedMs ? PROMISED_MS : STALE_MS;
    if (sinceMs >= revokedMs + holdsMs)
      this.#watch.breach("keys", `${key.id} was revoked ${sinceMs - revokedMs} ms ago and was accepted`, journey);
  }

  #working(): SimulatedKey[] {
    return this.keys.filter(
      ({ revokedMs, grant }) => revokedMs === undefined && (grant.record.expiresAtMs ?? Infinity) > this.#clock.now(),
    );
  }

  #read(hash: string): KeyGrant | undefined {
    return this.keys.find((key) => key.hash === hash)?.grant;
  }

  #tell(hash: string | undefined): void {
    for (const changed of this.#listeners) changed(hash);
  }
}

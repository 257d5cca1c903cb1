import { generateApiKey, hashApiKey } from "../../../src/access/api-key.ts";
import type { KeyLookup } from "../../../src/access/key-cache.ts";
import type { KeyGrant } from "../../../src/access/key-store.ts";
import type { Clock } from "../../../src/core/clock.ts";
import type { Limits } from "../../../src/core/principal.ts";
import type { Chance } from "./chance.ts";
import type { Watch } from "./watch.ts";

/** One key, as its owner knows it. */
export interface SimulatedKey {
  readonly id: string;
  readonly secret: string;
  readonly hash: string;
  grant: KeyGrant;
  revokedMs: number | undefined;
  /** Every process was told at once. */
  revokedAloud: boolean;
}

/** The longest that it takes to look up a key: longer than a process waits for what it knows already. */
export const MAX_LOOKUP_MS = 800;
/** What the documentation promises of a revocation that a process has not heard of. */
const PROMISED_MS = 5_000;
/** For so long somebody goes on trying with a key that was revoked. */
const LATELY_MS = 10_000;
/** And as long as the database cannot be asked. */
const STALE_MS = 60_000;

/** Secrets have nothing to do with what happens: the same ones serve every world. */
const secrets = Array.from({ length: 8 }, () => {
  const secret = generateApiKey();
  return { secret, hash: hashApiKey(secret) };
});

/** The keys of all processes, as the database keeps them, and the promise about revoked ones. */
export class KeyDirectory implements KeyLookup {
  readonly keys: readonly SimulatedKey[];
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #watch: Watch;
  readonly #listeners = new Set<(hash: string | undefined) => void>();
  /** How many look-ups of each key are on their way. */
  readonly #asked = new Map<string, number>();
  #isAway = false;
  #delayMs = 0;
  /** Since when it has been well. */
  #wellSinceMs = 0;

  constructor({ clock, chance, watch }: { clock: Clock; chance: Chance; watch: Watch }, grants: readonly KeyGrant[]) {
    this.#clock = clock;
    this.#chance = chance;
    this.#watch = watch;
    this.keys = grants.map((grant, index) => {
      return { id: grant.record.id, ...secrets[index]!, grant, revokedMs: undefined, revokedAloud: false };
    });
  }

  subscribe(changed: (hash: string | undefined) => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** From now on every look-up takes so long, or fails. */
  setHealth({ isAway, delayMs }: { readonly isAway: boolean; readonly delayMs: number }): void {
    if (!isAway && delayMs === 0 && (this.#isAway || this.#delayMs > 0)) this.#wellSinceMs = this.#clock.monotonic();
    this.#isAway = isAway;
    this.#delayMs = delayMs;
    if (isAway || delayMs > 0) this.#wellSinceMs = Infinity;
  }

  async findByHash(hash: string): Promise<KeyGrant | undefined> {
    // An answer may be on its way for long, and old news when it arrives.
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

  /** Mostly one that works, as far as its holder knows; often one that was revoked a while ago. */
  pick(): SimulatedKey {
    const working = this.#working();
    const lately = this.keys.filter(({ revokedMs = -Infinity }) => revokedMs > this.#clock.monotonic() - LATELY_MS);
    if (lately.length > 0 && this.#chance.percent(25)) return this.#chance.pick(lately);
    return this.#chance.pick(working.length > 0 && this.#chance.percent(90) ? working : this.keys);
  }

  /** Revokes one, unless it is the last that works: mostly one that is being looked up. */
  revokeOne(): void {
    const working = this.#working();
    if (working.length < 2) return;
    const asked = working.filter(({ hash }) => (this.#asked.get(hash) ?? 0) > 0);
    const key = this.#chance.pick(asked.length > 0 && this.#chance.percent(70) ? asked : working);
    key.revokedMs = this.#clock.monotonic();
    key.grant = { ...key.grant, record: { ...key.grant.record, revokedAtMs: this.#clock.now() } };
    const heard = this.#chance.weighted({ aloud: 6, vaguely: 2, silently: 2 });
    key.revokedAloud = heard === "aloud";
    this.#watch.count(`keys revoked ${heard}`);
    this.#watch.note(`${key.id} is revoked ${heard}`);
    if (heard === "aloud") this.#tell(key.hash);
    else if (heard === "vaguely") this.#tell(undefined);
  }

  changeLimits(key: SimulatedKey, change: Partial<Limits>): void {
    const { keyFamilyId } = key.grant.record;
    this.#watch.note(`the keys of ${keyFamilyId} have other limits: ${JSON.stringify(change)}`);
    for (const each of this.keys) {
      const { record } = each.grant;
      if (record.keyFamilyId !== keyFamilyId) continue;
      each.grant = { ...each.grant, record: { ...record, limits: { ...record.limits, ...change } } };
      this.#tell(each.hash);
    }
  }

  /** A request whose authentication began at `sinceMs` was let in as `key`: was that right? */
  judge(key: SimulatedKey, { sinceMs, journey }: { readonly sinceMs: number; readonly journey: number }): void {
    const { revokedMs, revokedAloud, grant } = key;
    const { expiresAtMs } = grant.record;
    if (expiresAtMs !== undefined && expiresAtMs <= this.#clock.now())
      this.#watch.breach("keys", `${key.id} has expired and was let in`, journey);
    // In the same instant: nobody can say which was first.
    if (revokedMs === undefined || sinceMs <= revokedMs) return;
    // Where nobody was told, the answer that was given last holds for its time.
    const holdsMs = revokedAloud ? 0 : this.#wellSinceMs <= revokedMs ? PROMISED_MS : STALE_MS;
    if (sinceMs >= revokedMs + holdsMs)
      this.#watch.breach("keys", `${key.id} was revoked ${sinceMs - revokedMs} ms ago and was let in`, journey);
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

import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { hashApiKey, isApiKey } from "./api-key.ts";
import type { KeyGrant } from "./key-store.ts";
import { isExpired, type KeyPrincipal, toPrincipal } from "./principal.ts";

/**
 * How long an answer of the store is taken for granted: what another process revokes, and nobody tells us of, is refused
 * after this. The promise is five seconds; the rest is for requests on their way.
 */
const KNOWN_TTL_MS = 4_500;

/**
 * The same for "there is no such key". A secret is asked for before it exists only by somebody who guessed 238 bits, so
 * this does not delay new keys: the store is always asked about a hash that has never been seen.
 */
const UNKNOWN_TTL_MS = 1_000;

/**
 * A key that is used after it has been known for so long is asked about before anybody has to wait for the answer, together
 * with all others of which this is so in a quarter of a second: one question for each of a thousand keys cost a tenth of all.
 */
const EARLY_MS = 3_000;
const GATHER_MS = 250;

/** How long a key goes on working while the store cannot be asked, counted from the store's last answer. */
export const STALE_LIMIT_MS = 60_000;

/** How long the store is left alone after it could not answer. */
const RETRY_MS = 1_000;

/** How long a request with a known key waits for the store, before the store is taken for away. */
const PATIENCE_MS = 500;

const MAX_KNOWN = 50_000;
const MAX_UNKNOWN = 10_000;

interface KnownKey {
  readonly principal: KeyPrincipal;
  refreshAtMs: number;
}

/** Turns API keys into principals, asking the store as rarely as the promises about revocation allow. */
export interface Authenticator {
  /**
   * Whose key this is. Throws an `unauthenticated` Failure for a missing, malformed, unknown, revoked or expired key
   * (the last three are not told apart), and an `overloaded` one when the store cannot be asked about a key that this
   * process does not know: only the store's word makes a key unknown.
   */
  authenticate(key: string | undefined): Promise<KeyPrincipal>;
  /**
   * What has become of keys, by their hashes: the principal, or undefined for a key that is refused now. Asks the store, all
   * at once, about those that it has not confirmed for three seconds or that have changed since; a key is left out of the
   * result when the store cannot say. Never rejects.
   */
  recheck(hashes: Iterable<string>): Promise<ReadonlyMap<string, KeyPrincipal | undefined>>;
  /**
   * Forgets a key, by its hash, so that the next request asks the store: for changes that are heard of. With undefined
   * it asks again about all of them, and keeps what it knows for as long as the store cannot answer.
   */
  invalidate(hash: string | undefined): void;
}

/** Who knows keys: the store, or somebody who has one. */
export interface KeyLookup {
  /**
   * Undefined when there is no such key. `hash` is the whole hash of `hashApiKey`; `key` is the secret itself, for those
   * who have to show it to somebody else. Rejects when nobody can say.
   */
  findByHash(hash: string, key: string): Promise<KeyGrant | undefined>;
  /** The same for many keys at once, by their hashes; without those that do not exist. Not everybody can say this. */
  findByHashes?(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyGrant>>;
}

export interface AuthenticatorOptions {
  readonly store: KeyLookup;
  readonly clock: Clock;
}

/** An Authenticator with a cache in this process. Its keys are whole hashes; no secret is kept. */
export function createAuthenticator({ store, clock }: AuthenticatorOptions): Authenticator {
  const known = new BoundedMap<string, KnownKey>(MAX_KNOWN);
  /** Until when a hash is refused without asking. */
  const unknown = new BoundedMap<string, number>(MAX_UNKNOWN);
  /** One question to the store per hash, however many requests wait for it. */
  const inFlight = new Map<string, Promise<KeyPrincipal>>();
  /** Hashes of known keys to be asked about together, and whether that is planned. */
  const aging = new Set<string>();
  let gathering = false;
  /** The hashes of each question about many keys that is in flight, without those that have changed since it was asked. */
  const batches = new Set<Set<string>>();
  /** When the store may be asked again, as long as it is away; undefined while it is there. */
  let away: { probeAtMs: number } | undefined;

  const keep = (hash: string, principal: KeyPrincipal | undefined, askedAtMs: number): void => {
    if (principal !== undefined) return known.set(hash, { principal, refreshAtMs: askedAtMs + KNOWN_TTL_MS });
    known.delete(hash);
    unknown.set(hash, askedAtMs + UNKNOWN_TTL_MS);
  };

  const lookUp = async (hash: string, key: string): Promise<KeyPrincipal> => {
    // Counted from the question, so that an answer is never taken to be younger than it is.
    const askedAtMs = clock.monotonic();
    const current = (): boolean => inFlight.get(hash) === asking;
    const asking = store.findByHash(hash, key).then(
      (found) => {
        away = undefined;
        const principal = found && toPrincipal(found, { hash, confirmedAtMs: askedAtMs });
        if (current()) keep(hash, principal, askedAtMs);
        if (principal === undefined) throw refused();
        return principal;
      },
      (cause: unknown) => {
        away = { probeAtMs: clock.monotonic() + RETRY_MS };
        const entry = known.get(hash);
        if (entry === undefined || !isUsable(entry, askedAtMs)) throw unavailable(cause);
        return entry.principal;
      },
    );
    inFlight.set(hash, asking);
    try {
      return await asking;
    } finally {
      if (current()) inFlight.delete(hash);
    }
  };

  /** What is known of a key, confirmed by the store where that does not take long. */
  const confirm = async (
    hash: string,
    { key, entry: { principal } }: { readonly key: string; readonly entry: KnownKey },
  ): Promise<KeyPrincipal> => {
    const nowMs = clock.monotonic();
    if (away !== undefined) {
      // One request a second asks for all, and does not wait for the answer either.
      if (nowMs >= away.probeAtMs) {
        away.probeAtMs = nowMs + RETRY_MS;
        lookUp(hash, key).catch(() => undefined);
      }
      return principal;
    }
    const asking = inFlight.get(hash) ?? lookUp(hash, key);
    return new Promise((resolve, reject) => {
      const cancel = clock.after(PATIENCE_MS, () => {
        away ??= { probeAtMs: clock.monotonic() + RETRY_MS };
        resolve(principal);
      });
      asking.then(resolve, reject).finally(cancel);
    });
  };

  /** Asks about many keys at once, and keeps the answers. They are left out of the result when the store cannot be asked. */
  const askTogether = async (hashes: readonly string[]): Promise<ReadonlyMap<string, KeyPrincipal | undefined>> => {
    const answers = new Map<string, KeyPrincipal | undefined>();
    const batch = new Set(hashes);
    batches.add(batch);
    const askedAtMs = clock.monotonic();
    const found = await store.findByHashes!(hashes).catch(() => undefined);
    batches.delete(batch);
    for (const hash of found === undefined ? [] : hashes) {
      const grant = found!.get(hash);
      const principal = grant && toPrincipal(grant, { hash, confirmedAtMs: askedAtMs });
      answers.set(hash, principal);
      // What was changed, or asked about, meanwhile is known better.
      const isNews = (known.get(hash)?.principal.confirmedAtMs ?? 0) <= askedAtMs;
      if (batch.has(hash) && isNews) keep(hash, principal, askedAtMs);
    }
    return answers;
  };

  /** Asks about keys that are still taken for granted. When that fails, whoever uses one of them later finds out why. */
  const refreshAging = async (): Promise<void> => {
    const hashes = [...aging];
    aging.clear();
    await askTogether(hashes);
    gathering = false;
  };

  const noteAge = (hash: string): void => {
    if (store.findByHashes === undefined) return;
    if (!gathering) clock.after(GATHER_MS, () => void refreshAging());
    gathering = true;
    aging.add(hash);
  };

  return {
    async authenticate(key) {
      if (key === undefined || key === "") throw new Failure("unauthenticated", MISSING);
      const hash = hashApiKey(key);
      const nowMs = clock.monotonic();
      const entry = known.get(hash);
      if (entry !== undefined && nowMs < entry.refreshAtMs) {
        if (nowMs >= entry.principal.confirmedAtMs + EARLY_MS) noteAge(hash);
        return checkExpiry(entry.principal, clock);
      }
      if (!isApiKey(key)) throw new Failure("unauthenticated", `${MALFORMED}${describeMistake(key)}`);
      const refusedUntilMs = unknown.get(hash);
      if (refusedUntilMs !== undefined && nowMs < refusedUntilMs) throw refused();
      if (entry !== undefined && isUsable(entry, nowMs)) return checkExpiry(await confirm(hash, { key, entry }), clock);
      return checkExpiry(await (inFlight.get(hash) ?? lookUp(hash, key)), clock);
    },

    async recheck(hashes) {
      const answers = new Map<string, KeyPrincipal | undefined>();
      const asked: string[] = [];
      const nowMs = clock.monotonic();
      for (const hash of hashes) {
        const entry = known.get(hash);
        const isYoung =
          entry !== undefined && nowMs < Math.min(entry.refreshAtMs, entry.principal.confirmedAtMs + EARLY_MS);
        if (isYoung) answers.set(hash, entry.principal);
        else asked.push(hash);
      }
      if (asked.length === 0 || store.findByHashes === undefined) return answers;
      for (const [hash, principal] of await askTogether(asked)) answers.set(hash, principal);
      return answers;
    },

    invalidate(hash) {
      if (hash === undefined) {
        for (const entry of known.values()) entry.refreshAtMs = 0;
        unknown.clear();
        inFlight.clear();
        for (const batch of batches) batch.clear();
        return;
      }
      known.delete(hash);
      unknown.delete(hash);
      // An answer on its way may be older than the change: it still goes to those who wait for it, but is not kept.
      inFlight.delete(hash);
      for (const batch of batches) batch.delete(hash);
    },
  };
}

const MISSING = 'An API key is required. Send it in the header "Authorization: Bearer <key>".';
const MALFORMED = "This is not an API key of this service. Keys begin with sk_parley_ and have 56 characters.";

/** What the text probably is in place of a key, as a sentence with a space before it. Never repeats the text. */
function describeMistake(text: string): string {
  if (/^["'“”‘’].*["'“”‘’]$/.test(text)) return " This one is in quotation marks: send it without them.";
  if (text.startsWith("sk-"))
    return " This one looks like a provider's key: make one of this service in the dashboard.";
  if (!text.startsWith("sk_parley_")) return "";
  if (text.length !== 56) return ` This one has ${text.length}: it may have been cut, or joined with something else.`;
  return " A character of this one is wrong.";
}

const REFUSED = "This API key is not valid. It may be mistyped, or no longer in use.";

/** What a key that does not exist, or no longer works, is refused with. */
export function refused(): Failure {
  return new Failure("unauthenticated", REFUSED);
}

/** What a key is refused with about which the store has not been able to say anything for too long. */
export function unavailable(cause?: unknown): Failure {
  return new Failure("overloaded", "API keys cannot be checked at the moment. Try again shortly.", {
    retryAfterMs: RETRY_MS,
    cause,
  });
}

function isUsable({ principal }: KnownKey, nowMs: number): boolean {
  return nowMs - principal.confirmedAtMs <= STALE_LIMIT_MS;
}

function checkExpiry(principal: KeyPrincipal, clock: Clock): KeyPrincipal {
  if (isExpired(principal, clock)) throw refused();
  return principal;
}

import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { hashApiKey, isApiKey } from "./api-key.ts";
import { isToken } from "./bound-keys.ts";
import type { KeyGrant } from "./key-store.ts";
import { type ConfirmedKey, type KnownKey, KnownKeys } from "./known-keys.ts";
import { type LookUpLimits, LookUpQueue } from "./look-up-queue.ts";
import { type IdentifiedKey, type NamedKey, NamedKeys } from "./named-keys.ts";
import { isExpired, type KeyPrincipal, toPrincipal } from "./principal.ts";

/**
 * Time for which an answer of the store is used. It bounds how long a key works that another process has revoked without
 * notification. The promise is five seconds; the rest is for requests already on their way.
 */
const KNOWN_TTL_MS = 4_500;

/**
 * The same for unknown keys. It does not delay new keys: the store is always asked about a hash not seen before, and no
 * client uses a secret of 238 random bits before it exists.
 */
const UNKNOWN_TTL_MS = 1_000;

/**
 * Age at which a key in use is refreshed in the background, so that no request waits. Keys are refreshed together, all those
 * of `GATHER_MS` in one query: a query for each of a thousand keys cost a tenth of the total.
 */
const EARLY_MS = 3_000;
const GATHER_MS = 250;

/** Default of the time for which a known key works while the store is unavailable. */
export const STALE_LIMIT_MS = 60_000;

/** Age from which keys are confirmed before they are handed to another process, at most, and how many in one query. */
const CONFIRM_MS = 45_000;
const CONFIRM_TOGETHER = 500;

/** Pause before the store is asked again after a failure. */
const RETRY_MS = 1_000;

/** Time that a request with a known key waits for the store before the store counts as unavailable. */
const STORE_WAIT_MS = 500;

/**
 * Limits of look-ups of keys that are not cached, which any client can invent. A store gets many in one query; a core, which
 * answers each in about a millisecond, gets them one by one. Tokens have a queue of their own, because a look-up may wait
 * for the keys of their issuer.
 */
const UNCACHED = {
  together: { perQuery: 500, inFlight: 1 },
  oneByOne: { perQuery: 1, inFlight: 16 },
} as const satisfies Record<string, LookUpLimits>;

const MAX_UNKNOWN = 10_000;

/** Turns API keys into principals, with as few store queries as the promises about revocation allow. */
export interface Authenticator {
  /**
   * Returns the principal of a key. Throws an `unauthenticated` Failure for a missing, malformed, unknown, revoked or
   * expired key (the last three with the same text), and an `overloaded` one when the key is not cached and the store is
   * unavailable or too many such keys wait for it: only the store can say that a key is unknown.
   */
  authenticate(key: string | undefined): Promise<KeyPrincipal>;
  /**
   * Returns the principal of a key by its ID, for callers that show something else than its secret; after a rotation that of its
   * successor, at the latest when the key itself has expired, unless the key is revoked. Throws `unauthenticated` and `overloaded`
   * as `authenticate` does.
   */
  authenticateId(id: string): Promise<KeyPrincipal>;
  /**
   * Checks keys again, by their hashes: returns the principal, or undefined for a key that is refused now. Asks the store
   * in one query about keys that were confirmed more than three seconds ago or have changed since; omits those when the
   * store is unavailable. Never rejects.
   */
  recheck(hashes: Iterable<string>): Promise<ReadonlyMap<string, KeyPrincipal | undefined>>;
  /**
   * Removes a key from the cache, by its hash, so that the next request asks the store. With undefined, all keys are to be
   * confirmed again, and known ones keep working while the store is unavailable.
   */
  invalidate(hash: string | undefined): void;
  /**
   * `invalidate` for a key that has changed at this Unix time, by another machine's clock. Does nothing when the store has
   * been asked later than that by more than the clocks can differ.
   */
  invalidateSince(hash: string, changedAtMs: number): void;
  /**
   * The keys that were confirmed last, at most `limit`, for `restore` of another process. If the store answers, those that were
   * not confirmed for a while are confirmed first. Never rejects.
   */
  confirmedKeys(limit: number): Promise<readonly ConfirmedKey[]>;
  /** Counts the times that a key was added to those known or removed from them. */
  changes(): number;
  /** Adds the keys that an earlier process knew: they work while the store is unavailable, until they are too old. */
  restore(keys: readonly ConfirmedKey[]): void;
}

/** Looks up keys: the store, or a core that has one. */
export interface KeyLookup {
  /**
   * Undefined when there is no such key. `hash` is the whole hash of `hashApiKey`; `key` is the secret itself, which a
   * front passes on to its core, and undefined for a key that was found by its ID. A Failure when a core has answered with it, which
   * says nothing about other keys. Rejects when there is no answer.
   */
  findByHash(hash: string, key: string | undefined): Promise<KeyGrant | Failure | undefined>;
  /** `findByHash` for many hashes at once; omits unknown ones. Optional. */
  findByHashes?(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyGrant>>;
  /**
   * Finds a key by its ID; undefined when there is none. Optional: no caller is then authenticated by an ID. A store that has it has
   * `findByHashes` too.
   */
  findWithHash?(id: string): Promise<IdentifiedKey | undefined>;
}

export interface AuthenticatorOptions {
  readonly store: KeyLookup;
  readonly clock: Clock;
  /** Time for which a known key works while the store is unavailable, counted from the store's last answer. Default: a minute. */
  readonly staleLimitMs?: number | undefined;
  /** Whether to look up a text that is not the secret of a key. Default: none. */
  readonly isOther?: (text: string) => boolean;
}

/** An Authenticator with a cache in this process. Its keys are whole hashes; no secret is kept but the last one. */
export function createAuthenticator({
  store,
  clock,
  staleLimitMs = STALE_LIMIT_MS,
  isOther = () => false,
}: AuthenticatorOptions): Authenticator {
  /** The last key with its hash: a gRPC call is authenticated twice in a row, by its guard and by its handler. */
  let last = { key: "", hash: "" };
  const known = new KnownKeys(clock, staleLimitMs);
  /** Unknown hashes, with the time until which they are refused without a query. */
  const unknown = new BoundedMap<string, number>(MAX_UNKNOWN);
  /** Queries in flight by hash, shared by all requests with the same key. */
  const inFlight = new Map<string, Promise<KeyPrincipal>>();
  /** Hashes of known keys for the next refresh; `gathering` is whether it is scheduled. */
  const aging = new Set<string>();
  let gathering = false;
  /** Hashes of each refresh in flight, without keys that have changed since it began. */
  const batches = new Set<Set<string>>();
  /** Set while the store is unavailable: the time of the next query. Undefined while it answers. */
  let away: { probeAtMs: number } | undefined;

  const noteAway = (): void => void (away ??= { probeAtMs: clock.monotonic() + RETRY_MS });
  const postpone = (entry: KnownKey): void => void (entry.refreshAtMs = clock.monotonic() + RETRY_MS);

  const toKnown = (grant: KeyGrant | undefined, hash: string, askedAtMs: number): KnownKey | undefined => {
    const principal = grant && toPrincipal(grant, { hash, confirmedAtMs: askedAtMs });
    return grant && principal && { grant, principal, refreshAtMs: askedAtMs + KNOWN_TTL_MS };
  };

  const keep = (hash: string, entry: KnownKey | undefined, askedAtMs: number): void => {
    if (entry !== undefined) return known.set(hash, entry);
    known.delete(hash);
    unknown.set(hash, askedAtMs + UNKNOWN_TTL_MS);
  };

  const uncached = { keys: queueOf(store), tokens: queueOf(store) };

  const lookUp = async (hash: string, key: string | undefined): Promise<KeyPrincipal> => {
    // Counted from the query, so that an answer is never taken to be younger than it is.
    const askedAtMs = clock.monotonic();
    const current = (): boolean => inFlight.get(hash) === asking;
    // Cached keys, and keys that the configuration names, bypass the queue of unknown keys.
    const isQueued = key !== undefined && known.get(hash) === undefined;
    const isAlone = isTokenKey(key);
    const queue = isAlone ? uncached.tokens : uncached.keys;
    const answer = isQueued ? queue.find({ hash, key }) : store.findByHash(hash, key);
    /** Returns the cached key when the store cannot confirm it now. */
    const lastKnown = (cause: unknown): KnownKey => {
      const entry = known.get(hash);
      if (entry === undefined || !known.isUsable(entry)) throw unavailable(cause);
      return entry;
    };
    /** Uses the cached key after a failure that says nothing about other keys. */
    const postponed = (cause: unknown): KeyPrincipal => {
      const entry = lastKnown(cause);
      postpone(entry);
      return entry.principal;
    };
    const asking = answer.then(
      (found) => {
        away = undefined;
        if (found instanceof Failure) return postponed(found);
        const entry = toKnown(found, hash, askedAtMs);
        if (current()) keep(hash, entry, askedAtMs);
        if (entry === undefined) throw refused();
        return entry.principal;
      },
      (cause: unknown) => {
        if (isAlone) return postponed(cause);
        noteAway();
        return lastKnown(cause).principal;
      },
    );
    inFlight.set(hash, asking);
    try {
      return await asking;
    } finally {
      if (current()) inFlight.delete(hash);
    }
  };

  /** Returns the store's answer. After STORE_WAIT_MS without one, calls `late` and returns `otherwise`. */
  const answerOr = <T>(asking: Promise<T>, otherwise: T, late: () => void): Promise<T> =>
    new Promise((resolve, reject) => {
      const cancel = clock.after(STORE_WAIT_MS, () => {
        late();
        resolve(otherwise);
      });
      asking.then(resolve, reject).finally(cancel);
    });

  /** Returns the principal of a known key, confirmed by the store within STORE_WAIT_MS or else from the cache. */
  const confirm = async (
    hash: string,
    { key, entry }: { readonly key: string | undefined; readonly entry: KnownKey },
  ): Promise<KeyPrincipal> => {
    const nowMs = clock.monotonic();
    const { principal } = entry;
    if (away !== undefined) {
      // One request a second queries the store for all others, without waiting for the answer.
      if (nowMs >= away.probeAtMs) {
        away.probeAtMs = nowMs + RETRY_MS;
        lookUp(hash, key).catch(() => undefined);
      }
      return principal;
    }
    return answerOr(
      inFlight.get(hash) ?? lookUp(hash, key),
      principal,
      isTokenKey(key) ? () => postpone(entry) : noteAway,
    );
  };

  /** Asks the store about many keys at once and caches the answers. The result is empty when the store is unavailable. */
  const askTogether = async (hashes: readonly string[]): Promise<ReadonlyMap<string, KeyPrincipal | undefined>> => {
    const answers = new Map<string, KeyPrincipal | undefined>();
    const batch = new Set(hashes);
    batches.add(batch);
    const askedAtMs = clock.monotonic();
    const found = await store.findByHashes!(hashes).catch(() => undefined);
    batches.delete(batch);
    for (const hash of found === undefined ? [] : hashes) {
      const entry = toKnown(found!.get(hash), hash, askedAtMs);
      answers.set(hash, entry?.principal);
      // A key that was changed or queried meanwhile has newer facts.
      const isNews = (known.get(hash)?.principal.confirmedAtMs ?? 0) <= askedAtMs;
      if (batch.has(hash) && isNews) keep(hash, entry, askedAtMs);
    }
    return answers;
  };

  /** Refreshes the aging keys. After a failure, the next request with one of them queries the store itself. */
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

  /** The entry of a key whose answer is still used. */
  const freshEntry = (hash: string, nowMs: number): KnownKey | undefined => {
    const entry = known.get(hash);
    if (entry === undefined || nowMs >= entry.refreshAtMs) return undefined;
    if (nowMs >= entry.principal.confirmedAtMs + EARLY_MS) noteAge(hash);
    return entry;
  };

  /** Returns the principal of a key that is not fresh. */
  const ask = async (hash: string, key: string | undefined): Promise<KeyPrincipal> => {
    const nowMs = clock.monotonic();
    const refusedUntilMs = unknown.get(hash);
    if (refusedUntilMs !== undefined && nowMs < refusedUntilMs) throw refused();
    const entry = known.get(hash);
    if (entry !== undefined && known.isUsable(entry)) return checkExpiry(await confirm(hash, { key, entry }), clock);
    return checkExpiry(await (inFlight.get(hash) ?? lookUp(hash, key)), clock);
  };

  const named = new NamedKeys({
    clock,
    find: (id) => store.findWithHash!(id),
    async isAnyRevoked(hashes) {
      const answers = await askTogether(hashes);
      return answers.size === 0 ? undefined : [...answers.values()].includes(undefined);
    },
    refused,
    unavailable,
    times: { knownMs: KNOWN_TTL_MS, unknownMs: UNKNOWN_TTL_MS, retryMs: RETRY_MS },
  });

  const invalidate = (hash: string | undefined): void => {
    named.invalidate(hash);
    if (hash === undefined) {
      known.expireAll();
      unknown.clear();
      inFlight.clear();
      for (const batch of batches) batch.clear();
      return;
    }
    known.delete(hash);
    unknown.delete(hash);
    // An answer in flight may be older than the change: the waiting requests get it, but it is not cached.
    inFlight.delete(hash);
    for (const batch of batches) batch.delete(hash);
  };

  return {
    async authenticate(key) {
      if (key === undefined || key === "") throw new Failure("unauthenticated", MISSING);
      if (key !== last.key) last = { key, hash: hashApiKey(key) };
      const { hash } = last;
      const entry = freshEntry(hash, clock.monotonic());
      if (entry !== undefined) return checkExpiry(entry.principal, clock);
      if (!isApiKey(key) && !isOther(key)) throw new Failure("unauthenticated", `${MALFORMED}${describeMistake(key)}`);
      return ask(hash, key);
    },

    async authenticateId(id) {
      const entry = await named.latest(id, (confirming, before) => {
        if (away === undefined) return answerOr(confirming, before, noteAway);
        confirming.catch(() => undefined);
        return Promise.resolve(before);
      });
      const principalOf = async ({ hash }: NamedKey): Promise<KeyPrincipal> => {
        const fresh = freshEntry(hash, clock.monotonic());
        return fresh === undefined ? ask(hash, undefined) : checkExpiry(fresh.principal, clock);
      };
      try {
        return await principalOf(entry);
      } catch (reason) {
        if (Failure.from(reason).code !== "unauthenticated") throw reason;
        const next = await named.next(id, entry);
        if (next === undefined || next.hash === entry.hash) throw reason;
        return principalOf(next);
      }
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

    invalidate,

    invalidateSince(hash, changedAtMs) {
      if (known.mayHaveMissed(hash, changedAtMs)) invalidate(hash);
    },

    async confirmedKeys(limit) {
      const old =
        store.findByHashes === undefined || away !== undefined
          ? []
          : known.olderThan(Math.min(CONFIRM_MS, staleLimitMs / 4));
      for (let from = 0; from < old.length; from += CONFIRM_TOGETHER) {
        const answers = await askTogether(old.slice(from, from + CONFIRM_TOGETHER));
        // The store is unavailable.
        if (answers.size === 0) break;
      }
      return known.list(limit);
    },

    changes: () => known.changes,

    restore(keys) {
      for (const { principal } of known.restore(keys)) named.restore(principal);
    },
  };
}

interface AskedKey {
  readonly hash: string;
  readonly key: string;
}

function queueOf(store: KeyLookup): LookUpQueue<AskedKey, KeyGrant | Failure> {
  if (store.findByHashes === undefined)
    return new LookUpQueue<AskedKey, KeyGrant | Failure>(
      (asked) => Promise.all(asked.map(({ hash, key }) => store.findByHash(hash, key))),
      UNCACHED.oneByOne,
    );
  return new LookUpQueue<AskedKey, KeyGrant | Failure>(async (asked) => {
    const found = await store.findByHashes!(asked.map(({ hash }) => hash));
    return asked.map(({ hash }) => found.get(hash));
  }, UNCACHED.together);
}

const MISSING = 'An API key is required. Send it in the header "Authorization: Bearer <key>".';
const MALFORMED = "This is not an API key of this service. Keys begin with sk_parley_ and have 56 characters.";

/** The likely mistake in a malformed key, as a sentence with a leading space. Never repeats the text. */
function describeMistake(text: string): string {
  if (/^["'“”‘’].*["'“”‘’]$/.test(text)) return " This one is in quotation marks: send it without them.";
  if (text.startsWith("sk_parley_admin_"))
    return " This one is an administration key, which only the dashboard's RPCs take: make a key for completions in the dashboard.";
  if (text.startsWith("sk-"))
    return " This one looks like a provider's key: make one of this service in the dashboard.";
  if (!text.startsWith("sk_parley_")) return "";
  if (text.length !== 56) return ` This one has ${text.length}: it may have been cut, or joined with something else.`;
  return " A character of this one is wrong.";
}

const REFUSED = "This API key is not valid. It may be mistyped, or no longer in use.";

/** Whether it is a token, whose look-up may wait for its issuer: that it fails or is late says nothing about the store. */
function isTokenKey(key: string | undefined): key is string {
  return key !== undefined && isToken(key);
}

/** The failure for a key that does not exist or no longer works. */
export function refused(): Failure {
  return new Failure("unauthenticated", REFUSED);
}

/** The failure for a key that the store has not been able to confirm for too long. */
export function unavailable(cause?: unknown): Failure {
  return new Failure("overloaded", "API keys cannot be checked at the moment. Try again shortly.", {
    retryAfterMs: RETRY_MS,
    unavailable: "database",
    cause,
  });
}

function checkExpiry(principal: KeyPrincipal, clock: Clock): KeyPrincipal {
  if (isExpired(principal, clock)) throw refused();
  return principal;
}

import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { KeyRecord } from "./key-store.ts";
import type { KeyPrincipal } from "./principal.ts";

const MAX_NAMED = 10_000;

/** The facts of a key that was found by its ID. */
export interface IdentifiedKey {
  readonly hash: string;
  readonly record: Pick<KeyRecord, "replacedBy" | "revokedAtMs">;
}

/** The key that an ID stands for. */
export interface NamedKey {
  /** Hash of the key, or of its latest successor. */
  readonly hash: string;
  /** ID of that key. */
  readonly id: string;
  /** Hashes of the rotated keys on the way to it. */
  readonly followed: readonly string[];
  readonly askedAtMs: number;
  /** Time from which the keys of `followed` have to be confirmed again as not revoked. */
  confirmAtMs: number;
}

export interface NamedKeysOptions {
  readonly clock: Clock;
  /** Undefined for an unknown ID. */
  readonly find: (id: string) => Promise<IdentifiedKey | undefined>;
  /** Whether one of these keys is revoked; an expired one is not. Undefined when that cannot be found out now. */
  readonly isAnyRevoked: (hashes: readonly string[]) => Promise<boolean | undefined>;
  /** The failures for an ID without a key in use, and for one that cannot be looked up. */
  readonly refused: () => Error;
  readonly unavailable: (cause?: unknown) => Error;
  /** Time for which an answer is used, time for which an ID is refused without a query, and pause after a failure. */
  readonly times: { readonly knownMs: number; readonly unknownMs: number; readonly retryMs: number };
}

/**
 * Finds keys by the IDs that the configuration names, and follows their rotations; a revoked key has no successor. Requests
 * with the same ID share a look-up.
 */
export class NamedKeys {
  readonly #options: NamedKeysOptions;
  readonly #known = new BoundedMap<string, NamedKey>(MAX_NAMED);
  /** IDs without a key in use, with the time until which they are refused without a query. */
  readonly #unknown = new BoundedMap<string, number>(MAX_NAMED);
  readonly #inFlight = new Map<string, Promise<NamedKey>>();
  /** After a failure: the time of the next query. */
  #retryAtMs = -Infinity;

  constructor(options: NamedKeysOptions) {
    this.#options = options;
  }

  /**
   * The known key of an ID, or the one that is found. `wait` waits for the confirmation of a known one. Throws `refused` or
   * `unavailable`.
   */
  async latest(
    id: string,
    wait: (confirming: Promise<NamedKey>, known: NamedKey) => Promise<NamedKey>,
  ): Promise<NamedKey> {
    const nowMs = this.#options.clock.monotonic();
    if (nowMs < (this.#unknown.get(id) ?? -Infinity)) throw this.#options.refused();
    const known = this.#known.get(id);
    if (known === undefined) return this.#share(id, (askedAtMs) => this.#find(id, { askedAtMs }));
    if (known.followed.length === 0 || nowMs < known.confirmAtMs) return known;
    const confirming = this.#share(id, (askedAtMs) => this.#confirm(known, askedAtMs));
    return wait(confirming, known);
  }

  /**
   * The key of an ID when the one before is in use no longer: it may have been rotated. Undefined when that was looked up a moment ago.
   * Throws as `latest` does.
   */
  async next(id: string, before: NamedKey): Promise<NamedKey | undefined> {
    const { clock, times } = this.#options;
    if (clock.monotonic() - before.askedAtMs < times.unknownMs) return undefined;
    return this.#share(id, (askedAtMs) => this.#find(before.id, { askedAtMs, followed: before.followed }));
  }

  /** Adds a key that an earlier process knew. When it has been rotated since then, `next` finds its successor. */
  restore({ keyId: id, hash }: Pick<KeyPrincipal, "keyId" | "hash">): void {
    this.#known.set(id, { hash, id, followed: [], askedAtMs: -Infinity, confirmAtMs: Infinity });
  }

  /** As `Authenticator.invalidate`. */
  invalidate(hash: string | undefined): void {
    // Answers in flight may be older than the change.
    this.#inFlight.clear();
    if (hash === undefined) this.#unknown.clear();
    for (const entry of this.#known.values())
      if (hash === undefined || entry.followed.includes(hash)) entry.confirmAtMs = -Infinity;
  }

  /** Looks an ID up once for all requests, and keeps the answer. `look` answers undefined when no key is in use. */
  #share(id: string, look: (askedAtMs: number) => Promise<NamedKey | undefined>): Promise<NamedKey> {
    const { clock, times, refused } = this.#options;
    const running = this.#inFlight.get(id);
    if (running !== undefined) return running;
    const askedAtMs = clock.monotonic();
    const isCurrent = (): boolean => this.#inFlight.get(id) === asking;
    const asking = look(askedAtMs)
      .then((entry) => {
        if (isCurrent() && entry !== undefined) this.#known.set(id, entry);
        if (entry !== undefined) return entry;
        this.#known.delete(id);
        if (isCurrent()) this.#unknown.set(id, askedAtMs + times.unknownMs);
        throw refused();
      })
      .finally(() => {
        if (isCurrent()) this.#inFlight.delete(id);
      });
    this.#inFlight.set(id, asking);
    return asking;
  }

  async #find(
    from: string,
    { askedAtMs, followed = [] }: { readonly askedAtMs: number; readonly followed?: readonly string[] },
  ): Promise<NamedKey | undefined> {
    const { clock, times, find, unavailable } = this.#options;
    if (askedAtMs < this.#retryAtMs) throw unavailable();
    const hashes = [...followed];
    for (let id = from; ;) {
      const found = await find(id).catch((cause: unknown) => {
        this.#retryAtMs = clock.monotonic() + times.retryMs;
        throw unavailable(cause);
      });
      if (found === undefined || found.record.revokedAtMs !== undefined) return undefined;
      const { replacedBy } = found.record;
      if (replacedBy === undefined)
        return { hash: found.hash, id, followed: hashes, askedAtMs, confirmAtMs: askedAtMs + times.knownMs };
      hashes.push(found.hash);
      id = replacedBy;
    }
  }

  /** Undefined when a key on the way has been revoked. */
  async #confirm(known: NamedKey, askedAtMs: number): Promise<NamedKey | undefined> {
    const { times, isAnyRevoked } = this.#options;
    const isRevoked = await isAnyRevoked(known.followed);
    if (isRevoked === true) return undefined;
    return { ...known, confirmAtMs: askedAtMs + (isRevoked === undefined ? times.retryMs : times.knownMs) };
  }
}

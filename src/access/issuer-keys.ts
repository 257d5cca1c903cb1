import { createLocalJWKSet, type LocalJWKSet } from "jose";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";

/** Age at which the keys are read again in the background. */
const REFRESH_MS = 5 * 60_000;

/** Time for which keys are used that cannot be read again. */
const STALE_LIMIT_MS = 60 * 60_000;

/** Shortest interval between two readings: tokens with unknown keys cannot cause more. */
const READ_EVERY_MS = 10_000;

export interface IssuerKeysOptions {
  /** Reads the JSON Web Key Set. Rejects, within seconds, with a message for an operator. */
  readonly read: () => Promise<string>;
  readonly clock: Clock;
  /** Called with the reason when the keys cannot be read, once until they can. */
  readonly failed: (problem: string) => void;
}

/** The public keys of an issuer of tokens (RFC 7517), read again when they are old and when a token has an unknown one. */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #text: string | undefined;
  #keys: LocalJWKSet | undefined;
  /** Time at which the keys in use were read last. */
  #readMs = -Infinity;
  #askedMs = -Infinity;
  #reading: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /** The latest keys, of any age; undefined when there have been none. Old ones are read again in the background. */
  latest(): LocalJWKSet | undefined {
    if (this.#ageMs > REFRESH_MS) void this.#read();
    return this.#keys;
  }

  /** Returns the keys. Throws `overloaded` when they could not be read for an hour. */
  async current(): Promise<LocalJWKSet> {
    if (this.#ageMs > STALE_LIMIT_MS) await this.#read();
    const keys = this.latest();
    if (keys !== undefined && this.#ageMs <= STALE_LIMIT_MS) return keys;
    throw new Failure(
      "overloaded",
      "The keys of this token's issuer cannot be read at the moment. Try again shortly.",
      {
        retryAfterMs: READ_EVERY_MS,
        unavailable: "token_issuer",
      },
    );
  }

  /**
   * Reads the keys again. Undefined when they have not changed. Throws `overloaded` when they were read less than
   * `READ_EVERY_MS` ago, or cannot be read: the issuer may have published newer ones.
   */
  async newerThan(keys: LocalJWKSet): Promise<LocalJWKSet | undefined> {
    if (this.#keys !== keys) return this.#keys;
    const isTooEarly = this.#waitMs > 0;
    if (!isTooEarly) await this.#read();
    if (this.#keys !== keys) return this.#keys;
    if (!isTooEarly && !this.#hasFailed) return undefined;
    throw new Failure(
      "overloaded",
      "This token is signed with a key that its issuer did not publish when its keys were read last. Try again shortly.",
      { retryAfterMs: Math.max(this.#waitMs, 1), unavailable: "token_issuer" },
    );
  }

  /** Time until the keys may be read again; 0 also while they are being read. */
  get #waitMs(): number {
    if (this.#reading !== undefined) return 0;
    return Math.max(0, this.#askedMs + READ_EVERY_MS - this.#options.clock.monotonic());
  }

  get #ageMs(): number {
    return this.#options.clock.monotonic() - this.#readMs;
  }

  #read(): Promise<void> {
    const nowMs = this.#options.clock.monotonic();
    if (this.#waitMs > 0) return Promise.resolve();
    this.#askedMs = this.#reading === undefined ? nowMs : this.#askedMs;
    return (this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined)));
  }

  async #readNow(): Promise<void> {
    try {
      const text = await this.#options.read();
      // An unchanged set stays, with the keys that it has imported.
      if (text !== this.#text) this.#keys = parse(text);
      this.#text = text;
      this.#readMs = this.#options.clock.monotonic();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#options.failed(error instanceof Error ? error.message : String(error));
      this.#hasFailed = true;
    }
  }
}

function parse(text: string): LocalJWKSet {
  try {
    return createLocalJWKSet(JSON.parse(text) as Parameters<typeof createLocalJWKSet>[0]);
  } catch (error) {
    throw new Error("this is no JSON Web Key Set", { cause: error });
  }
}

import { Failure } from "../../core/failure.ts";
import { Pieces } from "../../encoding/pieces.ts";
import type { Credential, Headers, RequestToAuthorize } from "./credential.ts";

/** A token with an expiry. */
export interface AccessToken {
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
  /** Headers that are sent with it, names in lower case. Default: none. */
  readonly headers?: Headers;
}

export interface TokenOptions {
  /** Gets a new token, not a cached one. Rejects with a Failure. Calls overlap only if one takes longer than `limitMs`. */
  readonly fetch: (signal: AbortSignal) => Promise<AccessToken>;
  /** Longest wait in ms for a token. */
  readonly limitMs: number;
  /** Milliseconds since 1970. Default: the process's clock. */
  readonly now?: () => number;
}

/** Limit of a token service's answer, in bytes: tokens take some kilobytes. */
export const MAX_TOKEN_BYTES = 1024 * 1024;

/** Milliseconds before the expiry from which the next token is fetched while this one is still used. Services renew theirs then. */
const EARLY_MS = 5 * 60_000;
/** Milliseconds before the expiry from which a token is not sent, because a request takes a while and clocks differ. */
const LATE_MS = 30_000;
/** Milliseconds after a failed refresh without a new one, while the old token is valid or when the service refused. */
const PAUSE_MS = 10_000;
/** Age in milliseconds from which a refused token is replaced. A younger token was refused for a reason other than its age. */
const YOUNG_MS = 30_000;

interface Held {
  readonly headers: Headers;
  readonly gotMs: number;
  readonly expiresMs: number;
}

/**
 * A token that is fetched at the first request and replaced before it expires. Requests wait only when no token is valid, all for the
 * same fetch.
 */
export class TokenCredential implements Credential {
  readonly #fetch: TokenOptions["fetch"];
  readonly #limitMs: number;
  readonly #now: () => number;
  #held: Held | undefined;
  #secrets: readonly string[] = [];
  #pending: Promise<Held> | undefined;
  #pausedUntilMs = 0;
  /** The refusal of the last fetch. Requests fail with it until the pause is over. */
  #refusal: Failure | undefined;

  constructor({ fetch, limitMs, now = () => Date.now() }: TokenOptions) {
    this.#fetch = fetch;
    this.#limitMs = limitMs;
    this.#now = now;
  }

  authorize({ signal }: Pick<RequestToAuthorize, "signal">): Headers | Promise<Headers> {
    const nowMs = this.#now();
    const held = this.#held;
    if (held === undefined || nowMs >= held.expiresMs - LATE_MS) return this.#wait(signal);
    // A token with a short life is renewed after half of it.
    const earlyMs = Math.min(EARLY_MS, (held.expiresMs - held.gotMs) / 2);
    if (nowMs >= held.expiresMs - earlyMs && nowMs >= this.#pausedUntilMs) this.#refresh().catch(() => {});
    return held.headers;
  }

  renew(refused: Headers): boolean {
    const held = this.#held;
    if (held === undefined || held.headers !== refused) return true;
    if (this.#now() - held.gotMs < YOUNG_MS) return false;
    this.#held = undefined;
    return true;
  }

  secrets(): readonly string[] {
    return this.#secrets;
  }

  async #wait(signal: AbortSignal): Promise<Headers> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) throw signal.reason;
    if (this.#refusal !== undefined && this.#now() < this.#pausedUntilMs) throw this.#refusal;
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return (await Promise.race([this.#refresh(), aborted])).headers;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** The fetch in flight, or a new one. */
  #refresh(): Promise<Held> {
    this.#pending ??= this.#fetchInTime()
      .then((held) => {
        this.#refusal = undefined;
        return (this.#held = held);
      })
      .catch((reason: unknown) => {
        this.#refusal = reason instanceof Failure && reason.code === "upstream_refused_us" ? reason : undefined;
        this.#pausedUntilMs = this.#now() + PAUSE_MS;
        throw reason;
      })
      .finally(() => (this.#pending = undefined));
    return this.#pending;
  }

  async #fetchInTime(): Promise<Held> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const limit = new AbortController();
    const timer = setTimeout(() => {
      reject(unavailableToken(`There was no token in ${this.#limitMs / 1000} s (timeouts.connect_ms).`));
      limit.abort();
    }, this.#limitMs);
    try {
      const { token, expiresMs, headers } = await Promise.race([this.#fetch(limit.signal), late]);
      const all = Object.freeze({ ...headers, authorization: `Bearer ${token}` });
      // Answers may still contain the previous token.
      this.#secrets = [token, ...this.#secrets.slice(0, 1)];
      return { headers: all, gotMs: this.#now(), expiresMs };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Reads a token service's answer. Throws an Error beyond MAX_TOKEN_BYTES, and closes the connection. */
export async function readAnswer(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces = new Pieces();
  let size = 0;
  for await (const piece of body) {
    size += piece.length;
    if (size > MAX_TOKEN_BYTES) throw new Error(`the token service's answer is larger than ${MAX_TOKEN_BYTES} bytes`);
    pieces.add(piece);
  }
  return pieces.joined();
}

/** The message for callers. The reason is for the operator, in the failure's cause. */
const NO_TOKEN = "The gateway could not get a token for the upstream provider.";

/** The failure when a token service refused, or the machine has no credential. `text` is for the operator. */
export function refusedToken(text: string): Failure {
  return new Failure("upstream_refused_us", NO_TOKEN, { cause: new Error(text) });
}

/** The failure when a token service could not be reached, or failed itself. `text` is for the operator. */
export function unavailableToken(text: string): Failure {
  // This process lacks file descriptors, which is not the provider's fault.
  const requestBound = /\bE[MN]FILE\b/.test(text);
  return new Failure("upstream_unavailable", NO_TOKEN, { cause: new Error(text), transient: true, requestBound });
}

/** Whether an error's code or text is about the network, for libraries that have no other way to tell. */
export function isNetworkText(text: string): boolean {
  return /\b(?:ECONN[A-Z]+|E[MN]FILE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|CERT_[A-Z_]+|UNABLE_TO_[A-Z_]+|\w*SELF_SIGNED_CERT\w*|ERR_TLS\w*|timed out|timeout|network_error|endpoints_resolution_error|socket hang up)\b/.test(
    text,
  );
}

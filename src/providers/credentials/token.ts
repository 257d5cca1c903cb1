import { Failure } from "../../core/failure.ts";
import { Pieces } from "../../encoding/pieces.ts";
import type { Credential, Headers, RequestToAuthorize } from "./credential.ts";

/** A token that authenticates for some time. */
export interface AccessToken {
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
  /** Sent beside it; names in lower case. Default: none. */
  readonly headers?: Headers;
}

export interface TokenOptions {
  /** Gets a new token, not one from a cache. Rejects with a Failure. Calls do not overlap, unless one takes longer than `limitMs`. */
  readonly fetch: (signal: AbortSignal) => Promise<AccessToken>;
  /** Longest wait in ms for a token. */
  readonly limitMs: number;
  /** Milliseconds since 1970. Default: the process's clock. */
  readonly now?: () => number;
}

/** Limit of a token service's answer, in bytes: tokens take some kilobytes. */
export const MAX_TOKEN_BYTES = 1024 * 1024;

/** Time in ms before its end in which a token still serves, while the next one is fetched. Services refresh theirs at this age. */
const EARLY_MS = 5 * 60_000;
/** Time in ms before its end from which a token is not sent: a request takes a while, and clocks differ. */
const LATE_MS = 30_000;
/** Time in ms after a failed refresh in which none is tried while the old token is valid, or when the service refused. */
const PAUSE_MS = 10_000;
/** Age in ms from which a refused token is replaced: a younger one was refused for another reason than its age. */
const YOUNG_MS = 30_000;

interface Held {
  readonly headers: Headers;
  readonly gotMs: number;
  readonly expiresMs: number;
}

/**
 * A token that is fetched at the first request and replaced before it expires. Requests wait for it only when none is valid, all
 * for the same fetch.
 */
export class TokenCredential implements Credential {
  readonly #fetch: TokenOptions["fetch"];
  readonly #limitMs: number;
  readonly #now: () => number;
  #held: Held | undefined;
  #secrets: readonly string[] = [];
  #pending: Promise<Held> | undefined;
  #pausedUntilMs = 0;
  /** The refusal of the last fetch, with which requests fail until the pause is over. */
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
    // Half of its life is left to a token that lives for less than EARLY_MS.
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
      // The one before may still be in an answer.
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

/** What callers are told, whatever the reason: that is for the operator, in the cause. */
const NO_TOKEN = "The gateway could not get a token for the upstream provider.";

/** The failure of a token service that refused, or of a machine without a credential. `text` is for the operator. */
export function refusedToken(text: string): Failure {
  return new Failure("upstream_refused_us", NO_TOKEN, { cause: new Error(text) });
}

/** The failure of a token service that could not be reached, or that failed itself. `text` is for the operator. */
export function unavailableToken(text: string): Failure {
  // For want of file descriptors here, which is not the provider's fault.
  const requestBound = /\bE[MN]FILE\b/.test(text);
  return new Failure("upstream_unavailable", NO_TOKEN, { cause: new Error(text), transient: true, requestBound });
}

/** Whether an error's code or text is about the network, in libraries that do not tell it in another way. */
export function isNetworkText(text: string): boolean {
  return /\b(?:ECONN[A-Z]+|E[MN]FILE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|CERT_[A-Z_]+|UNABLE_TO_[A-Z_]+|\w*SELF_SIGNED_CERT\w*|ERR_TLS\w*|timed out|timeout|network_error|endpoints_resolution_error|socket hang up)\b/.test(
    text,
  );
}

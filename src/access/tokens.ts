import { hash } from "node:crypto";
import { decodeJwt, errors, type JWTPayload, jwtVerify, type LocalJWKSet } from "jose";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { IssuerKeys } from "./issuer-keys.ts";

/** Longest token in characters. */
const MAX_LENGTH = 8 * 1024;

/** Verified tokens that are not verified again until they expire or the keys of their issuer change. */
const MAX_VERIFIED = 10_000;

/** Characters of a claim that an error repeats. */
const SHOWN = 100;

/** The key for which tokens with these claims stand. */
export interface TokenBinding {
  /** Each has this value, or is a list with it. */
  readonly claims: Readonly<Record<string, string | number | boolean>>;
  /** ID of the key. */
  readonly key: string;
}

/** An issuer whose tokens are accepted. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** Algorithms of signatures with public keys, by their names in JWS. */
  readonly algorithms: readonly string[];
  /** Tolerated difference of clocks. */
  readonly clockSkewMs: number;
  /** The first that matches counts. */
  readonly bindings: readonly TokenBinding[];
  readonly keys: IssuerKeys;
}

interface VerifiedToken {
  readonly key: string;
  /** Unix milliseconds. */
  readonly expiresAtMs: number;
  readonly issuer: TokenIssuer;
  /** The keys that it was verified with. */
  readonly keys: LocalJWKSet;
}

/** Verifies JSON Web Tokens (RFC 7519) and finds the keys for which they stand. */
export class TokenVerifier {
  readonly #issuers: ReadonlyMap<string, TokenIssuer>;
  readonly #clock: Clock;
  /** By the token's digest. */
  readonly #verified = new BoundedMap<string, VerifiedToken>(MAX_VERIFIED);

  constructor(issuers: readonly TokenIssuer[], clock: Clock) {
    this.#issuers = new Map(issuers.map((one) => [one.issuer, one]));
    this.#clock = clock;
  }

  /**
   * Returns the ID of the key for which a token stands. Throws `unauthenticated`, or `overloaded` when the keys of its issuer
   * cannot be read, or it has an unknown one and they were read a moment ago.
   */
  async keyOf(token: string): Promise<string> {
    if (token.length > MAX_LENGTH) throw refused(`This token has more than ${MAX_LENGTH} characters.`);
    if (!isCanonical(token)) throw refused("This token is not a JSON Web Token.");
    const digest = hash("sha256", token, "base64url");
    const known = this.#verified.get(digest);
    const isKnown = known !== undefined && this.#clock.now() < known.expiresAtMs;
    if (isKnown && known.issuer.keys.latest() === known.keys) return known.key;
    const issuer = this.#issuerOf(token);
    const { claims, keys } = await this.#verify(token, issuer);
    const key = keyFor(claims, issuer);
    if (key === undefined)
      throw refused(`No binding of access.issuers has the claims of this token (sub ${shown(claims.sub)}).`);
    this.#verified.set(digest, { key, expiresAtMs: claims.exp! * 1000 + issuer.clockSkewMs, issuer, keys });
    return key;
  }

  /** The key for which a token that was verified before stands by these issuers; undefined for none. Its end does not count. */
  boundKey(token: string): string | undefined {
    const claims = decodeJwt(token);
    const issuer = this.#issuers.get(claims.iss ?? "");
    return issuer && keyFor(claims, issuer);
  }

  /** The issuer that an unverified token names. */
  #issuerOf(token: string): TokenIssuer {
    let iss: unknown;
    try {
      ({ iss } = decodeJwt(token));
    } catch {
      throw refused("This token is not a JSON Web Token.");
    }
    const issuer = typeof iss === "string" ? this.#issuers.get(iss) : undefined;
    if (issuer === undefined) throw refused(`Tokens of the issuer ${shown(iss)} are not accepted.`);
    return issuer;
  }

  async #verify(
    token: string,
    issuer: TokenIssuer,
  ): Promise<{ readonly claims: JWTPayload; readonly keys: LocalJWKSet }> {
    const verify = async (keys: LocalJWKSet) => {
      const { payload: claims } = await jwtVerify(token, keys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: [...issuer.algorithms],
        clockTolerance: issuer.clockSkewMs / 1000,
        currentDate: new Date(this.#clock.now()),
        requiredClaims: ["exp"],
      });
      return { claims, keys };
    };
    const keys = await issuer.keys.current();
    try {
      return await verify(keys).catch(async (reason: unknown) => {
        const newer = reason instanceof errors.JWKSNoMatchingKey ? await issuer.keys.newerThan(keys) : undefined;
        if (newer === undefined) throw reason;
        return verify(newer);
      });
    } catch (reason) {
      throw reason instanceof Failure ? reason : refused(describe(reason));
    }
  }
}

function keyFor(claims: JWTPayload, { bindings }: TokenIssuer): string | undefined {
  return bindings.find((binding) => matches(claims, binding))?.key;
}

/**
 * Whether a token is written as its issuer writes it. The library also accepts padding, white space and other spare bits in the
 * signature, so that the bearer of one token could fill the memory of verified ones with spellings of it.
 */
function isCanonical(token: string): boolean {
  const signature = TOKEN.exec(token)?.[1];
  return signature !== undefined && Buffer.from(signature, "base64url").toString("base64url") === signature;
}

/** The compact form (RFC 7515), with its signature. Head and payload are covered by the signature as they are written. */
const TOKEN = /^[\w-]+\.[\w-]+\.([\w-]*)$/;

function matches(claims: JWTPayload, { claims: expected }: TokenBinding): boolean {
  return Object.entries(expected).every(([name, value]) => {
    const claim = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return claim === value || (Array.isArray(claim) && claim.includes(value));
  });
}

function refused(message: string): Failure {
  return new Failure("unauthenticated", message);
}

function shown(claim: unknown): string {
  return typeof claim === "string" ? JSON.stringify(claim.slice(0, SHOWN)) : "that is missing";
}

/** Why a token is refused, for its bearer. */
function describe(reason: unknown): string {
  if (reason instanceof errors.JWTExpired) return "This token has expired.";
  if (reason instanceof errors.JWTClaimValidationFailed)
    return `The claim "${reason.claim}" of this token is missing, or not what this service expects.`;
  if (reason instanceof errors.JOSEAlgNotAllowed) return "This token is signed with an algorithm that is not accepted.";
  if (reason instanceof errors.JWSSignatureVerificationFailed) return "The signature of this token is not valid.";
  if (reason instanceof errors.JWKSNoMatchingKey)
    return "This token is signed with a key that its issuer does not publish.";
  if (reason instanceof errors.JWKSMultipleMatchingKeys)
    return "This token does not say which key of its issuer it is signed with (kid).";
  return "This token cannot be verified.";
}

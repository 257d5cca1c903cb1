import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { ClientCertificate } from "../net/tls-entrance.ts";
import type { Authenticator } from "./key-cache.ts";
import type { KeyPrincipal } from "./principal.ts";
import type { TokenVerifier } from "./tokens.ts";

/** Credentials that a caller presents: the secret of a key, a token of an issuer, or a certificate. */
export interface ShownCredentials {
  /** The bearer token; empty for a header with something else, undefined without one. */
  readonly token: string | undefined;
  /** The verified certificate of the connection. */
  readonly certificate: ClientCertificate | undefined;
}

/** The keys for which certificates and tokens stand. */
export interface Bindings {
  /** IDs of keys by alternative names of certificates, such as `URI:spiffe://example.org/billing`. */
  readonly certificates: ReadonlyMap<string, string>;
  /** Alternative names of the certificates of fronts, which hand on the names of their callers' certificates. */
  readonly fronts: ReadonlySet<string>;
  /** Undefined where no tokens are accepted. */
  readonly tokens: TokenVerifier | undefined;
}

interface Ports {
  readonly keys: Pick<Authenticator, "authenticate" | "authenticateId">;
  readonly clock: Clock;
  /** The bindings in force. */
  readonly bindings: () => Bindings;
}

/** Names of a certificate that an error repeats, and the length of each. */
const SHOWN = { names: 3, length: 100 } as const;

/**
 * Authenticates a caller by its token, or without one by its certificate. Throws an `unauthenticated` Failure, or an
 * `overloaded` one when keys cannot be looked up.
 */
export function authenticateCaller(ports: Ports, { token, certificate }: ShownCredentials): Promise<KeyPrincipal> {
  if (token === undefined && certificate !== undefined) return authenticateCertificate(ports, certificate);
  const { tokens } = ports.bindings();
  if (token === undefined || tokens === undefined || !isToken(token)) return ports.keys.authenticate(token);
  return authenticateToken(ports, token, tokens);
}

async function authenticateToken(
  { keys, bindings }: Ports,
  token: string,
  tokens: TokenVerifier,
): Promise<KeyPrincipal> {
  const keyId = await tokens.keyOf(token);
  let confirmedBy: TokenVerifier | undefined = tokens;
  const isBound = (): boolean => {
    const inForce = bindings().tokens;
    // A reload with other issuers makes another verifier.
    if (inForce !== confirmedBy && inForce?.boundKey(token) === keyId) confirmedBy = inForce;
    return inForce === confirmedBy;
  };
  return { ...(await keyOf(keys, keyId, "token")), isBound };
}

async function authenticateCertificate(
  { keys, clock, bindings }: Ports,
  certificate: ClientCertificate,
): Promise<KeyPrincipal> {
  if (certificate.expiresAtMs <= clock.now())
    throw new Failure("unauthenticated", "The client certificate has expired since the connection was opened.");
  const boundKey = (): string | undefined => {
    const bound = bindings().certificates;
    return certificate.names.map((name) => bound.get(name)).find((id) => id !== undefined);
  };
  const keyId = boundKey();
  if (keyId !== undefined) {
    const isBound = (): boolean => !certificate.isRevoked() && boundKey() === keyId;
    return { ...(await keyOf(keys, keyId, "client certificate")), isBound };
  }
  const names = certificate.names.slice(0, SHOWN.names).map((name) => name.slice(0, SHOWN.length));
  const shown = names.length === 0 ? "it has none of the kinds DNS and URI" : names.join(", ");
  throw new Failure(
    "unauthenticated",
    `No alternative name of the client certificate is in access.certificates (${shown}). ` +
      'Or send an API key in the header "Authorization: Bearer <key>".',
  );
}

async function keyOf(keys: Ports["keys"], id: string, shown: string): Promise<KeyPrincipal> {
  try {
    return await keys.authenticateId(id);
  } catch (reason) {
    const failure = Failure.from(reason);
    if (failure.code !== "unauthenticated") throw failure;
    throw new Failure("unauthenticated", `The ${shown} stands for the key ${id}, which is not in use.`);
  }
}

/** Whether a bearer token looks like a JSON Web Token, and not like an API key. */
export function isToken(text: string): boolean {
  return text.startsWith("ey") && text.includes(".");
}

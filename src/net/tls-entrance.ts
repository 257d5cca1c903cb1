import { constants, type X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { Server, TlsOptions, TLSSocket } from "node:tls";
import { type CertificateIdentity, identitiesOf, type RevocationLists } from "./revocation-lists.ts";
import type { TlsMaterial, WatchedTlsFiles } from "./tls-files.ts";
import { type TlsAbuse, TlsGuard } from "./tls-guard.ts";

/** The verified certificate of a client. */
export interface ClientCertificate {
  /** Its alternative names of the kinds DNS (in lower case) and URI, such as `URI:spiffe://example.org/billing`. */
  readonly names: readonly string[];
  /** End of its validity in Unix milliseconds. */
  readonly expiresAtMs: number;
  /** Whether a revocation list that came after the handshake has it, or an authority of its chain. */
  readonly isRevoked: () => boolean;
}

/** Time limit of a handshake, in milliseconds. */
const HANDSHAKE_MS = 10_000;

/**
 * Limit of unfinished handshakes of a listener; beyond it the oldest connection closes. Each holds about 70 KiB. A client finishes
 * its handshake within a round trip, so a thousand others would have to connect meanwhile to displace it.
 */
const MAX_HANDSHAKES = 1_024;

export interface TlsEntranceOptions {
  readonly files: WatchedTlsFiles;
  /** ALPN names of the accepted protocols, preferred ones first. */
  readonly protocols: readonly ("h2" | "http/1.1")[];
  /** With a CA: whether clients without a certificate are refused. */
  readonly clientCertificates: "required" | "optional";
  /** Called for a client whose certificate is missing or not accepted, with OpenSSL's code for the reason. */
  readonly refused: (reason: string, address: string | undefined) => void;
  /** The client to which an address is attributed; undefined for an address that many clients share, which is never blocked. */
  readonly clientOf: (address: string) => string | undefined;
  /** Called when a connection is closed for its abuse of TLS. */
  readonly abused: (reason: TlsAbuse, address: string) => void;
  /** Default: MAX_HANDSHAKES. */
  readonly maxHandshakes?: number;
}

/**
 * TLS of one listener: versions 1.2 and 1.3, with limits for handshakes, verified client certificates, and files that may change.
 * New connections get the new certificate; existing ones continue.
 */
export class TlsEntrance {
  readonly #options: TlsEntranceOptions;
  /** Sockets with an unfinished handshake by `nameOf`, oldest first. `verified`: the set `#verified` at their beginning. */
  readonly #shaking = new Map<string, { readonly socket: Socket; readonly verified: WeakSet<Socket> }>();
  readonly #certificates = new WeakMap<Socket, ClientCertificate>();
  /** Connections whose client was verified by the authorities in force. Replaced by a new set when the authorities change. */
  #verified = new WeakSet<Socket>();
  /** Open connections of clients with a certificate, with its identities for revocation lists. Empty without lists. */
  readonly #listed = new Map<Socket, readonly CertificateIdentity[]>();
  /** Connections of clients whose certificate was revoked after the handshake. */
  readonly #revoked = new WeakSet<Socket>();
  readonly #trustListeners = new Set<() => void>();
  #guard: TlsGuard | undefined;

  constructor(options: TlsEntranceOptions) {
    this.#options = options;
  }

  /** Options for the constructor of the server. */
  get serverOptions(): TlsOptions {
    return {
      ...this.#contextOptions(this.#options.files.material),
      ALPNProtocols: [...this.#options.protocols],
      handshakeTimeout: HANDSHAKE_MS,
    };
  }

  /** The certificate of a connection's client; undefined without one, when it is revoked, or when the authorities have changed since. */
  certificateOf(socket: Socket): ClientCertificate | undefined {
    return this.#verified.has(socket) ? this.#certificates.get(socket) : undefined;
  }

  /**
   * Whether the connection should close after its calls, because the authorities have changed since its client was verified, or the
   * certificate is revoked or has expired.
   */
  isRetired(socket: Socket): boolean {
    const certificate = this.#certificates.get(socket);
    return certificate !== undefined && (!this.#verified.has(socket) || certificate.expiresAtMs <= Date.now());
  }

  /** Calls back when the authorities for clients, or their revocation lists, have changed. */
  onTrustChange(listener: () => void): void {
    this.#trustListeners.add(listener);
  }

  /** Notes that the caller of a request on this connection was authenticated. */
  authenticated(socket: Socket): void {
    this.#guard?.authenticated(socket);
  }

  /** Prepares a server made with `serverOptions`. `accept` is called before each handshake; it returns false if it closed the socket. */
  guard(server: Server, accept: (socket: Socket) => boolean): void {
    const { clientOf, abused: closed, files } = this.#options;
    const guard = new TlsGuard({ clientOf, asksForCertificates: files.material.ca !== undefined, closed });
    this.#guard = guard;
    const [shakeHands] = server.listeners("connection") as ((socket: Socket) => void)[];
    server.removeAllListeners("connection").on("connection", (socket: Socket) => {
      if (!accept(socket) || !guard.add(socket)) return;
      this.#begin(socket);
      shakeHands!.call(server, socket);
    });
    // Prepended, so that no other listener sees a refused connection as an open one.
    server.prependListener("secureConnection", (socket) => this.#finish(socket));
    // HTTP's own listener would answer in plain text.
    server.removeAllListeners("tlsClientError").on("tlsClientError", (_, socket) => socket.destroy());
    files.onChange((material, before) => {
      server.setSecureContext(this.#contextOptions(material));
      const { lists } = files;
      if (lists !== undefined) this.#forgetRevoked(lists);
      if (material.ca !== before.ca) this.#verified = new WeakSet();
      else if (lists === undefined) return;
      for (const listener of this.#trustListeners) listener();
    });
  }

  /** Reads the files again. */
  check(): Promise<void> {
    return this.#options.files.check();
  }

  /** Closes connections whose handshake is not finished, and ends the checks of the files. */
  close(): void {
    this.#options.files.close();
    this.#guard?.close();
    for (const { socket } of this.#shaking.values()) socket.destroy();
  }

  #contextOptions(material: TlsMaterial): TlsOptions {
    const verifies = material.ca !== undefined;
    return {
      ...material,
      minVersion: "TLSv1.2",
      // Each renegotiation costs as much as a handshake, and no client needs one.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      // `#finish` refuses them, and reports the reason.
      ...(verifies && { requestCert: true, rejectUnauthorized: false }),
    };
  }

  #begin(socket: Socket): void {
    const name = nameOf(socket);
    const [oldest] = this.#shaking;
    if (oldest !== undefined && this.#shaking.size >= (this.#options.maxHandshakes ?? MAX_HANDSHAKES)) {
      this.#shaking.delete(oldest[0]);
      oldest[1].socket.destroy();
    }
    this.#shaking.set(name, { socket, verified: this.#verified });
    socket.once("close", () => {
      if (this.#shaking.get(name)?.socket === socket) this.#shaking.delete(name);
    });
  }

  #finish(socket: TLSSocket): void {
    const name = nameOf(socket);
    // If the authorities have changed during the handshake, the new ones did not verify it.
    const { verified, socket: below } = this.#shaking.get(name) ?? {};
    this.#shaking.delete(name);
    if (below !== undefined) this.#guard?.finish(below, socket);
    if (this.#options.files.material.ca === undefined) return;
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined && this.#options.clientCertificates === "optional") return;
    const { lists } = this.#options.files;
    const reason =
      certificate === undefined
        ? "NO_CERTIFICATE"
        : (reasonToRefuse(socket, certificate) ?? (lists && reasonInLists(lists, certificate)));
    if (certificate === undefined || reason !== undefined) {
      this.#options.refused(reason!, socket.remoteAddress);
      if (certificate !== undefined && below !== undefined) this.#guard?.refuse(below, certificate);
      socket.destroy();
      return;
    }
    this.#certificates.set(socket, {
      names: alternativeNames(certificate.subjectAltName),
      expiresAtMs: Date.parse(certificate.validTo),
      isRevoked: () => this.#revoked.has(socket),
    });
    verified?.add(socket);
    if (lists !== undefined) {
      this.#listed.set(socket, identitiesOf(certificate));
      socket.once("close", () => this.#listed.delete(socket));
    }
    this.#guard?.authenticated(socket);
  }

  #forgetRevoked(lists: RevocationLists): void {
    for (const [socket, identities] of this.#listed) {
      if (!identities.some((identity) => lists.revokes(identity))) continue;
      this.#verified.delete(socket);
      this.#revoked.add(socket);
    }
  }
}

/**
 * Why revocation lists refuse a certificate; undefined when they do not. OpenSSL checks no lists for resumed sessions, and not the new
 * lists when they are replaced during the handshake.
 */
function reasonInLists(lists: RevocationLists, certificate: X509Certificate): string | undefined {
  let identities: readonly CertificateIdentity[];
  try {
    identities = identitiesOf(certificate);
  } catch {
    // OpenSSL also accepts encodings other than DER.
    return "CERT_NOT_IN_DER";
  }
  if (identities.some((identity) => lists.revokes(identity))) return "CERT_REVOKED";
  return lists.hasExpiredFor(identities[0]!, Date.now()) ? "CRL_HAS_EXPIRED" : undefined;
}

/** Why a certificate is not accepted; undefined when it is accepted. OpenSSL does not check the expiry again for a resumed session. */
function reasonToRefuse(socket: TLSSocket, { validTo }: X509Certificate): string | undefined {
  if (!socket.authorized) return String(socket.authorizationError);
  return Date.parse(validTo) <= Date.now() ? "CERT_HAS_EXPIRED" : undefined;
}

/**
 * Name of a connection, equal for its TCP socket and the TLS socket above it. It has both addresses, because a client may use the
 * same port for connections to several addresses of a listener.
 */
function nameOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

const NAME = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;

/**
 * Reads Node's text of alternative names. Node writes names with special characters as JSON strings, so that one name cannot look
 * like several; such names are left out.
 */
export function alternativeNames(text = ""): string[] {
  const names: string[] = [];
  NAME.lastIndex = 0;
  for (let found = NAME.exec(text); found !== null && found[0] !== ""; found = NAME.exec(text)) {
    const [, kind, value = ""] = found;
    if (kind === "DNS" && !value.startsWith('"')) names.push(`DNS:${value.toLowerCase()}`);
    if (kind === "URI" && !value.startsWith('"')) names.push(`URI:${value}`);
  }
  return names;
}
